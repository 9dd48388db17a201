#!/bin/sh
# climate.sh INPUT... OUTPUT_DIR
#
# Reads monthly temperature records, works out the mean of each decade and the
# linear trend of each source, and leaves in OUTPUT_DIR
#   climate.tsv   the table (columns: see table.awk)
#   climate.svg   the same as a picture, with the months behind it
#
# An INPUT is a file, or a directory of which every *.csv is read. Both results
# are written whole under a temporary name, read back, and then moved: the
# picture first, the table last, so a table that is there is never alone.
# Wrong input, a read that fails or a full disk: a message, exit code 1, and
# neither result is touched (if the second move fails, the picture is the new
# one and the table the old). Exit code 2: called wrongly.
#
# Needs a POSIX sh, awk, cat, mkdir, mv, rm and tr; nothing else.

set -u
LC_ALL=C
export LC_ALL

usage='usage: climate.sh INPUT... OUTPUT_DIR
example: climate.sh records results'
newline='
'
stop='' # the exit code of a signal that has come

die() {
	printf 'climate: %s\n' "$*" >&2
	exit "${stop:-1}"
}

# feed FILE... sends the files to records.awk, each between two marks, and one
# more when all are sent. A byte 1 begins a mark. The line feed before the closing mark shows whether the file
# ended with one of its own, and the mark whether it was read to its end. Zero
# bytes, which some awks pass over, become bytes that no record may hold.
feed() {
	{
		for file in "$@"; do
			printf '\001file %s\n' "$file"
			if cat -- "$file"; then
				printf '\n\001end\n'
			else
				printf '\n\001unread\n'
			fi
		done
		printf '\001done\n'
	} | tr '\000' '\002'
}

# work PROGRAM runs one of the awk programs on the checked records.
work() {
	printf '%s\n' "$records" | awk -f "$here/stats.awk" -f "$here/$1"
}

# save NAME TEXT writes TEXT under the temporary directory and reads it back,
# since a shell does not learn of an error that comes when a file is closed.
save() {
	printf '%s\n' "$2" | cat >"$temp/$1" || die "$out/$1: cannot be written"
	[ "$(cat "$temp/$1")" = "$2" ] || die "$out/$1: was not kept as written"
	[ ! -d "$out/$1" ] || die "$out/$1: is a directory, move it away"
}

case ${1-} in
-h | --help)
	printf '%s\n' "$usage"
	exit 0
	;;
esac
if [ $# -lt 2 ]; then
	printf '%s\n' "$usage" >&2
	exit 2
fi

case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac

# Each input in turn leaves the front of the arguments, and the files it stands
# for join at the back; what then remains in front is the output directory.
left=$(($# - 1))
while [ "$left" -gt 0 ]; do
	input=$1
	shift
	left=$((left - 1))
	if [ ! -d "$input" ]; then
		set -- "$@" "$input"
		continue
	fi
	before=$#
	for file in "$input"/*.csv; do
		# A pattern that matched nothing is no file; a dead link is one, and
		# is complained of when it is read.
		if [ -e "$file" ] || [ -h "$file" ]; then
			[ -d "$file" ] || set -- "$@" "$file"
		fi
	done
	[ $# -gt "$before" ] || die "$input: holds no *.csv that can be seen"
done
out=$1
shift
[ -d "$out" ] || die "$out: not a directory, make it first"
case $* in
*"$newline"*) die "a file name holds a line feed, rename it" ;;
esac

records=$(feed "$@" | awk -f "$here/records.awk") || exit 1
table=$(work table.awk) || die "the table could not be made"
plot=$(work plot.awk) || die "the plot could not be made"

# mkdir takes a name only if nobody has it: jobs on other nodes may write into
# the same directory, under the same process number. From here on a signal is
# noted, and obeyed where it leaves nothing behind and no result alone. mkdir
# and mv ignore it: what they did is known then, and is done for both results.
temp='' try=0
trap '[ -z "$temp" ] || rm -rf "$temp"' EXIT
trap 'stop=129' HUP
trap 'stop=130' INT
trap 'stop=143' TERM
until why=$(trap '' HUP INT TERM && mkdir "$out/.climate.$$.$try" 2>&1); do
	[ -z "$stop" ] || exit "$stop"
	[ -e "$out/.climate.$$.$try" ] || die "$out: cannot be written: $why"
	try=$((try + 1))
	[ "$try" -lt 100 ] || die "$out: remove the old .climate.* directories from it"
done
temp=$out/.climate.$$.$try

save climate.svg "$plot"
save climate.tsv "$table"
[ -z "$stop" ] || exit "$stop"
(
	trap '' HUP INT TERM
	mv -f "$temp/climate.svg" "$out/climate.svg" && mv -f "$temp/climate.tsv" "$out/climate.tsv"
) || die "$out: the results cannot be put in place"
[ -z "$stop" ] || exit "$stop"
printf 'climate: wrote %s and %s\n' "$out/climate.tsv" "$out/climate.svg"
