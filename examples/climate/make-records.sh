#!/bin/sh
# make-records.sh DIR
#
# Makes up monthly temperature records for the example, and writes them into
# DIR, which it creates: made-land.csv and made-sea.csv, 1920-01 to 2019-12.
#
# THESE RECORDS ARE MADE. Nobody measured them. They are a warming that gathers
# speed, plus noise that remembers the month before, from a fixed linear
# congruential generator: every run on every machine makes the same bytes.

set -eu
LC_ALL=C
export LC_ALL

if [ $# -ne 1 ]; then
	printf '%s\n' 'usage: make-records.sh DIR' 'example: make-records.sh records' >&2
	exit 2
fi
dir=$1
mkdir -p "$dir"

# make_records SOURCE SEED START SLOPE BEND NOISE makes one source, in degrees:
# the first month's level, the rise over the century (SLOPE even, BEND
# gathering speed), and the size of the noise.
make_records() {
	awk -v source="$1" -v seed="$2" -v start="$3" -v slope="$4" -v bend="$5" -v noise="$6" '
	# Lehmer generator of Park and Miller: every product is exact in a double.
	function uniform() {
		seed = seed * 16807 % 2147483647
		return seed / 2147483647
	}
	# Twelve uniform numbers less six are nearly normal, with variance one.
	function normal(    i, sum) {
		for (i = 0; i < 12; i++)
			sum += uniform()
		return sum - 6
	}
	BEGIN {
		print "Source,Year,Mean"
		for (m = 0; m < 1200; m++) {
			t = m / 1200
			drift = 0.7 * drift + noise * normal()
			printf "%s,%04d-%02d,%.4f\n", source, 1920 + int(m / 12), m % 12 + 1,
				start + slope * t + bend * t * t + drift
		}
	}' >"$dir/.$1.tmp"
	mv -f "$dir/.$1.tmp" "$dir/$1.csv"
}

make_records made-land 1920 -0.35 0.15 1.25 0.16
make_records made-sea 2019 -0.20 0.10 0.70 0.07
