#!/bin/sh
# inventory.sh DIR OUT
#
# Writes size, MD5 sum and name of each file below DIR into OUT/inventory.tsv, sorted by
# name. The table is there whole or, with an exit code that is not 0, not touched.
set -eu
LC_ALL=C
export LC_ALL

temp=$(mktemp -d "$2/.inventory.XXXXXX")
trap 'rm -rf "$temp"' EXIT
trap 'exit 143' TERM
(cd "$1" && find . -type f) >"$temp/names"
sort -o "$temp/names" "$temp/names"
while IFS= read -r name; do
	size=$(wc -c <"$1/$name")
	sum=$(md5sum <"$1/$name")
	printf '%s\t%s\t%s\n' "$size" "${sum%% *}" "${name#./}"
done <"$temp/names" >"$temp/table"
mv "$temp/table" "$2/inventory.tsv"
echo "inventory: $(wc -l <"$2/inventory.tsv") files in $1"
