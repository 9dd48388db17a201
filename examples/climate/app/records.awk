# records.awk checks what climate.sh feeds it, file by file, and prints a line
# for each record:
#
#   SOURCE <tab> MONTH <tab> MEAN
#
# MONTH counts from January of the year 0. The first ten faults go to standard
# error as FILE:LINE: what is wrong; any fault makes the exit code 1. After a
# fault the input is still read to its end, so that the feeder can finish.

BEGIN { FS = ","; OFS = "\t" }

function fault(why) {
	if (++faults <= 10)
		printf "climate: %s:%d: %s\n", file, line, why > "/dev/stderr"
}

# Marks from climate.sh: one opens a file, one closes it, one ends everything.

/^\001file / {
	file = substr($0, 7)
	line = 0
	header = 0
	next
}

/^\001end$/ {
	# Climate.sh sent a line feed of its own: it ended the file's last line, or
	# made an empty line that the file does not have.
	if (before != "")
		fault("the last line has no line feed, so it may be torn; add one if it is whole")
	else if (!header)
		fault("the header Source,Year,Mean is wanted, and there is nothing")
	next
}

/^\001unread$/ {
	line--          # of a line that was cut, or that the file does not have
	fault("cannot be read to its end")
	next
}

/^\001done$/ {
	whole = 1
	next
}

{
	line++
	before = $0
	if (line == 1)
		sub(/^\357\273\277/, "")        # some programs begin UTF-8 with a mark
	sub(/\r$/, "")
}

/^[ \t]*$/ { next }

!header {
	header = 1
	if ($0 != "Source,Year,Mean")
		fault("the header Source,Year,Mean is wanted")
	next
}

NF != 3 {
	fault("a record has three fields, Source,Year,Mean; here are " NF)
	next
}

$1 !~ /^[!#-~]([ !#-~]*[!#-~])?$/ {
	fault("a source is named in printable ASCII without quotes")
	next
}

$2 !~ /^[0-9][0-9][0-9][0-9]-(0[1-9]|1[0-2])$/ {
	fault("the year is not written YYYY-MM: " $2)
	next
}

$3 !~ /^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$/ {
	fault("the mean is not a number: " $3)
	next
}

$3 >= 1000 || $3 <= -1000 {
	fault("the mean is no temperature in degrees Celsius: " $3)
	next
}

($1, $2) in place {
	fault($1 " has " $2 " already, at " place[$1, $2])
	next
}

{
	place[$1, $2] = file ":" line
	kept++
	print $1, substr($2, 1, 4) * 12 + substr($2, 6, 2) - 1, $3
}

END {
	if (faults > 10)
		printf "climate: and %d more faults\n", faults - 10 > "/dev/stderr"
	if (!whole)
		print "climate: the input was cut off" > "/dev/stderr"
	else if (!kept && !faults)
		print "climate: no records at all" > "/dev/stderr"
	exit(faults || !whole || !kept)
}
