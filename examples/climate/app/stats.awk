# stats.awk reads the lines of records.awk and offers to the program that is
# named after it, once the input has ended and study() was called:
#
#   sources, source[1..sources]     the names, sorted by byte
#   first[s], last[s], months[s]    first and last month of source s, how many
#   value[s, m]                     the record of month m, where there is one
#   count[s, d], mean[s, d]         of decade d, where count is not 0
#   slope[s]                        degrees per month, where months[s] > 1
#   centre[s], level[s]             the point the trend line goes through
#
# A month is year * 12 + 0..11, a decade year / 10. Sums run in the order of
# the calendar, so the order of the input changes nothing, and are taken from
# the centre, so that they lose nothing to large numbers.

BEGIN { FS = "\t" }

{
	if (!($1 in months)) {
		source[++sources] = $1
		first[$1] = last[$1] = $2 + 0
	}
	months[$1]++
	value[$1, $2 + 0] = $3 + 0
	if ($2 + 0 < first[$1])
		first[$1] = $2 + 0
	if ($2 + 0 > last[$1])
		last[$1] = $2 + 0
}

function decade(m) {
	return int(m / 120)
}

function year(m) {
	return sprintf("%04d", int(m / 12))
}

# three writes v with three decimals, and zero without a sign.
function three(v,    text) {
	text = sprintf("%.3f", v)
	return text == "-0.000" ? "0.000" : text
}

function study(    i) {
	sort_sources()
	for (i = 1; i <= sources; i++) {
		average(source[i])
		fit(source[i])
	}
}

# The empty string keeps names that look like numbers from being compared so.
function sort_sources(    i, j, s) {
	for (i = 2; i <= sources; i++) {
		s = source[i]
		for (j = i; j > 1 && (source[j - 1] "") > (s ""); j--)
			source[j] = source[j - 1]
		source[j] = s
	}
}

function average(s,    m, d) {
	for (m = first[s]; m <= last[s]; m++)
		if ((s, m) in value) {
			count[s, decade(m)]++
			mean[s, decade(m)] += value[s, m]
			centre[s] += m - first[s]
			level[s] += value[s, m]
		}
	for (d = decade(first[s]); d <= decade(last[s]); d++)
		if (count[s, d])
			mean[s, d] /= count[s, d]
	centre[s] = first[s] + centre[s] / months[s]
	level[s] /= months[s]
}

# fit is a least squares line over the months of s.
function fit(s,    m, xx, xy) {
	for (m = first[s]; m <= last[s]; m++)
		if ((s, m) in value) {
			xx += (m - centre[s]) * (m - centre[s])
			xy += (m - centre[s]) * (value[s, m] - level[s])
		}
	slope[s] = xx ? xy / xx : 0
}
