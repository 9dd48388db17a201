# table.awk prints the table. Its fields are separated by tabs:
#
#   Source  Period     Months  Value   Unit
#   A       1920-1929  120     -0.213  degC
#   A       1920-2019  1200    1.012   degC/century
#
# First the mean of each decade that has a record, by source and time; Months
# says from how many. Then for each source the linear trend over its months,
# from the year of the first to that of the last; "-" if it has only one month.

END {
	study()
	OFS = "\t"
	print "Source", "Period", "Months", "Value", "Unit"
	for (i = 1; i <= sources; i++)
		decades(source[i])
	for (i = 1; i <= sources; i++)
		trend(source[i])
}

function decades(s,    d) {
	for (d = decade(first[s]); d <= decade(last[s]); d++)
		if (count[s, d])
			print s, year(d * 120) "-" year(d * 120 + 119), count[s, d], three(mean[s, d]), "degC"
}

function trend(s) {
	print s, year(first[s]) "-" year(last[s]), months[s],
		(months[s] > 1 ? three(slope[s] * 1200) : "-"), "degC/century"
}
