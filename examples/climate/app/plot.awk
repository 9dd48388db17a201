# plot.awk draws what table.awk tells, as an SVG picture that needs nothing
# else: months as a thin light line, decade means as bars, trends dashed.

END {
	study()
	layout()
	head()
	grid()
	for (i = 1; i <= sources; i++)
		curve(source[i], colour(i))
	for (i = 1; i <= sources; i++)
		bars(source[i], "#ffffff", 7)           # an edge that lifts them off the months
	for (i = 1; i <= sources; i++)
		line(source[i], colour(i))
	for (i = 1; i <= sources; i++)
		bars(source[i], colour(i), 4)
	print "</svg>"
}

# colour gives the nth source one of six colours that colour-blind people can
# tell apart (after Okabe and Ito).
function colour(n,    all) {
	split("#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9", all, " ")
	return all[(n - 1) % 6 + 1]
}

# xml makes a source's name safe as text and in quotes.
function xml(text) {
	gsub(/&/, "\\&amp;", text)
	gsub(/</, "\\&lt;", text)
	gsub(/>/, "\\&gt;", text)
	return text
}

function ceil(v) {
	return int(v) < v ? int(v) + 1 : int(v)
}

# Where a month (its middle is m + 0.5) and a temperature lie in the picture.

function x(m) {
	return sprintf("%.2f", left + (m - from) / (to - from) * (right - left))
}

function y(v) {
	return sprintf("%.2f", bottom - (v - low) / (high - low) * (bottom - top))
}

# layout sets the frame and the range of both axes: time begins with a decade
# and ends with the last month, temperatures have a little room at both ends.
function layout(    i, m, s, room) {
	width = 960
	left = 72
	right = width - 28
	top = 92 + 22 * sources
	bottom = top + 380
	height = bottom + 56

	from = first[source[1]]
	to = last[source[1]]
	low = high = level[source[1]]
	for (i = 1; i <= sources; i++) {
		s = source[i]
		if (first[s] < from)
			from = first[s]
		if (last[s] > to)
			to = last[s]
		for (m = first[s]; m <= last[s]; m++)
			if ((s, m) in value)
				stretch(value[s, m])
		stretch(height_at(s, first[s]))
		stretch(height_at(s, last[s]))
	}
	from = decade(from) * 120
	to++

	steps(high - low)
	room = high > low ? (high - low) * 0.04 : step
	low -= room
	high += room
}

function stretch(v) {
	if (v < low)
		low = v
	if (v > high)
		high = v
}

# steps picks the step of the grid, the smallest of 1, 2 or 5 times a power of
# ten that gives at most seven, and the decimals its labels need.
function steps(range,    try) {
	unit = 0.001
	decimals = 3
	for (try = 0; ; try++) {
		step = unit * (try % 3 == 0 ? 1 : try % 3 == 1 ? 2 : 5)
		if (range <= 7 * step)
			return
		if (try % 3 == 2) {
			unit *= 10
			if (decimals)
				decimals--
		}
	}
}

# height_at is the temperature of the trend line of s in month m.
function height_at(s, m) {
	return level[s] + slope[s] * (m - centre[s])
}

function head(    i, title) {
	title = "Temperature " year(from) "&#8211;" year(to - 1)
	print "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"",
		width, height, width, height
	print " font-family=\"system-ui, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif\" font-size=\"13\" fill=\"#344054\">"
	print "<title>" title "</title>"
	print "<desc>Monthly records, the mean of each decade, and the linear trend of each source.</desc>"
	printf "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height
	printf "<text x=\"%d\" y=\"38\" font-size=\"22\" font-weight=\"600\" fill=\"#101828\">%s</text>\n", left, title
	key()
	for (i = 1; i <= sources; i++)
		legend(source[i], colour(i), 70 + 22 * i)
}

# key explains the three kinds of line, in grey.
function key() {
	printf "<g transform=\"translate(%d 62)\" stroke=\"#98a2b3\" fill=\"#667085\">\n", left
	print "<path d=\"M0 0l4 -4 4 6 4 -5 4 3 4 -5 4 5\" fill=\"none\"/>"
	print "<text x=\"32\" y=\"4\" stroke=\"none\">months</text>"
	print "<path d=\"M104 0h24\" stroke-width=\"5\" stroke-linecap=\"round\"/>"
	print "<text x=\"138\" y=\"4\" stroke=\"none\">mean of a decade</text>"
	print "<path d=\"M274 0h28\" stroke-width=\"2\" stroke-dasharray=\"7 4\"/>"
	print "<text x=\"310\" y=\"4\" stroke=\"none\">linear trend</text>"
	print "</g>"
}

function legend(s, ink, at,    change) {
	change = months[s] > 1 ? three(slope[s] * 1200) : ""
	if (change != "")
		change = (change + 0 >= 0 ? "+" : "") change " &#176;C per century, " year(first[s]) "&#8211;" year(last[s])
	sub(/^-/, "\\&#8722;", change)
	printf "<path d=\"M%d %dh24\" stroke=\"%s\" stroke-width=\"5\" stroke-linecap=\"round\"/>\n", left, at, ink
	printf "<text x=\"%d\" y=\"%d\"><tspan font-weight=\"600\" fill=\"%s\">%s</tspan><tspan dx=\"10\">%s</tspan></text>\n",
		left + 34, at + 4, ink, xml(s), change
}

function grid(    n, m, every) {
	print "<g stroke=\"#e4e7ec\">"
	for (n = ceil(low / step); n <= high / step; n++)
		printf "<path d=\"M%d %sH%d\"%s/>\n", left, y(n * step), right, (n ? "" : " stroke=\"#98a2b3\"")
	print "</g>\n<g text-anchor=\"end\" fill=\"#667085\">"
	for (n = ceil(low / step); n <= high / step; n++)
		printf "<text x=\"%d\" y=\"%.2f\">%s</text>\n", left - 10, y(n * step) + 4.5, tick(n)
	print "</g>\n<g text-anchor=\"middle\" fill=\"#667085\">"
	every = years_between(to - from)
	for (m = ceil(from / every) * every; m <= to; m += every) {
		printf "<path d=\"M%s %dv6\" stroke=\"#98a2b3\"/>\n", x(m), bottom
		printf "<text x=\"%s\" y=\"%d\">%d</text>\n", x(m), bottom + 22, m / 12
	}
	printf "<text x=\"%d\" y=\"%d\">year</text>\n", (left + right) / 2, bottom + 44
	printf "<text transform=\"translate(20 %d) rotate(-90)\">mean, &#176;C</text>\n", (top + bottom) / 2
	print "</g>"
	printf "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#98a2b3\"/>\n", left, top, bottom, right
}

# years_between is how many months lie between two labels under an axis that
# spans so many: a year in a single decade, else ten years, or more where
# labels would touch.
function years_between(span,    every) {
	if (span <= 120)
		return 12
	for (every = 120; span / every > 19; every *= (every == 240 ? 2.5 : 2))
		;
	return every
}

# tick is the label of the nth line of the grid.
function tick(n) {
	if (!n)
		return "0"
	return (n < 0 ? "&#8722;" : "") sprintf("%." decimals "f", (n < 0 ? -n : n) * step)
}

# curve draws the months of s; a gap in them is a gap in the curve.
function curve(s, ink,    m, pen) {
	printf "<path fill=\"none\" stroke=\"%s\" stroke-width=\"0.8\" stroke-opacity=\"0.38\" stroke-linejoin=\"round\" d=\"", ink
	for (m = first[s]; m <= last[s]; m++) {
		if (!((s, m) in value)) {
			pen = 0
			continue
		}
		printf "%s%s %s%s", (pen ? "L" : "M"), x(m + 0.5), y(value[s, m]), (m % 12 == 11 ? "\n" : "")
		pen = 1
	}
	print "\"/>"
}

function line(s, ink) {
	printf "<path d=\"M%s %sL%s %s\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"7 4\"/>\n",
		x(first[s] + 0.5), y(height_at(s, first[s])), x(last[s] + 0.5), y(height_at(s, last[s])), ink
}

# bars draws the decade means of s over the decades' own time, as far as the
# records of s reach; pointing at one shows its number.
function bars(s, ink, wide,    d, a, b) {
	for (d = decade(first[s]); d <= decade(last[s]); d++) {
		if (!count[s, d])
			continue
		a = first[s] > d * 120 ? first[s] : d * 120
		b = last[s] < d * 120 + 119 ? last[s] + 1 : d * 120 + 120
		printf "<path d=\"M%s %sH%s\" stroke=\"%s\" stroke-width=\"%d\"><title>%s %s&#8211;%s: %s &#176;C (%d months)</title></path>\n",
			x(a), y(mean[s, d]), x(b), ink, wide,
			xml(s), year(d * 120), year(d * 120 + 119), three(mean[s, d]), count[s, d]
	}
}
