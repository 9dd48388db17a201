package climate

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skeletonkey/examples/internal/readmetest"
)

// makeRecords makes the records of the example with the script that is embedded.
func makeRecords(t *testing.T, n node) string {
	t.Helper()
	script, err := files.ReadFile("make-records.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), Records)
	if code, said := n.run(t, write(t, "make-records.sh", string(script)), dir); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	return dir
}

// The files in sample are what README.md shows; every shell and awk must make the same bytes.
func TestMadeRecords(t *testing.T) {
	nodes(t, func(t *testing.T, n node) {
		records := makeRecords(t, n)
		table, plot := n.climate(t, records)
		if want := read(t, "sample/"+Table); table != want {
			t.Errorf("table:\n%s\nsample/%s:\n%s", table, Table, want)
		}
		if plot != read(t, "sample/"+Plot) {
			t.Errorf("the plot is not sample/%s", Plot)
		}
		checkTable(t, records, table)
		checkPlot(t, table, plot, 2400)
	})
}

func TestRealRecords(t *testing.T) {
	records := filepath.Dir(readmetest.Shared(t, "data/global-temp/monthly.csv"))
	months := strings.Count(read(t, filepath.Join(records, "monthly.csv")), "\n") - 1
	nodes(t, func(t *testing.T, n node) {
		table, plot := n.climate(t, records)
		checkTable(t, records, table)
		checkPlot(t, table, plot, months)
	})
}

// checkTable holds a table against the independent computations.
func checkTable(t *testing.T, records, table string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(records, "*.csv"))
	var all strings.Builder
	for _, f := range files {
		all.WriteString(read(t, f))
	}
	means, sources := sortedMeans(t, records), parse(t, all.String())
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if lines[0] != "Source\tPeriod\tMonths\tValue\tUnit" {
		t.Errorf("header %q", lines[0])
	}
	if got, want := len(lines)-1, len(means)+len(sources); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		months, value := atoi(t, f[2]), atof(t, f[3])
		switch f[4] {
		case "degC":
			want, ok := means[[2]string{f[0], f[1]}]
			if !ok || months != want.months || !near(value, want.mean, 0.000501) {
				t.Errorf("%q, want %+v", line, want)
			}
		case "degC/century":
			s := sources[f[0]]
			if s == nil || months != len(s.months) || !near(value, s.trend(), 0.000501) {
				t.Errorf("%q, want %v", line, s.trend())
			}
		default:
			t.Errorf("unit of %q", line)
		}
	}
}

// checkPlot sees that a plot is XML, shows each number of the table, and all months in the frame.
func checkPlot(t *testing.T, table, plot string, months int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(plot))
	var text bytes.Buffer
	points := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			text.Write(token)
		case xml.StartElement:
			for _, a := range token.Attr {
				if a.Name.Local == "href" || a.Name.Local == "src" {
					t.Errorf("the plot needs %s", a.Value)
				}
				if a.Name.Local == "d" && strings.Contains(a.Value, "\n") {
					points += framed(t, a.Value)
				}
			}
		}
	}
	if points != months {
		t.Errorf("%d months drawn, want %d", points, months)
	}
	shown := strings.ReplaceAll(text.String(), "\u2013", "-")
	for line := range strings.Lines(table) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		want := fmt.Sprintf("%s %s: %s °C (%s months)", f[0], f[1], f[3], f[2])
		if f[4] == "degC/century" {
			want = fmt.Sprintf("%s%s °C per century, %s", f[0], plus(f[3]), f[1])
		}
		if f[0] != "Source" && !strings.Contains(shown, want) {
			t.Errorf("the plot does not say %q", want)
		}
	}
}

func plus(v string) string {
	if strings.HasPrefix(v, "-") {
		return strings.Replace(v, "-", "\u2212", 1)
	}
	return "+" + v
}

// framed counts the points of a curve and sees that they lie in the frame.
func framed(t *testing.T, path string) int {
	t.Helper()
	fields := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("ML \n", r) })
	for i := 0; i < len(fields); i += 2 {
		x, y := atof(t, fields[i]), atof(t, fields[i+1])
		if x < 72 || x > 932 || y < 100 || y > 600 || math.IsNaN(x+y) {
			t.Errorf("a point at %v, %v", x, y)
		}
	}
	return len(fields) / 2
}

func TestForms(t *testing.T) {
	const head = "Source,Year,Mean\n"
	const top = "Source\tPeriod\tMonths\tValue\tUnit\n"
	for _, c := range []struct{ name, in, want string }{
		{"CRLF, a mark, blank lines", "\ufeffSource,Year,Mean\r\n\r\nA,1999-12,1\r\n  \nA,2000-01,2\r\n",
			"A\t1990-1999\t1\t1.000\tdegC\nA\t2000-2009\t1\t2.000\tdegC\nA\t1999-2000\t2\t1200.000\tdegC/century\n"},
		{"no sign before zero", head + "A,1900-01,-0.0004\nA,1900-02,-0.0004\n",
			"A\t1900-1909\t2\t0.000\tdegC\nA\t1900-1900\t2\t0.000\tdegC/century\n"},
		{"one month has no trend", head + "A,1900-01,-1.5e-1\n",
			"A\t1900-1909\t1\t-0.150\tdegC\nA\t1900-1900\t1\t-\tdegC/century\n"},
		{"any order, a gap, names sorted by byte", head + "9,1921-01,+.5\n10,0999-12,3.\n9,1900-01,.25\n",
			"10\t0990-0999\t1\t3.000\tdegC\n9\t1900-1909\t1\t0.250\tdegC\n9\t1920-1929\t1\t0.500\tdegC\n" +
				"10\t0999-0999\t1\t-\tdegC/century\n9\t1900-1921\t2\t1.190\tdegC/century\n"},
		{"names that XML must not see", head + "<a & 'b'>,1900-01,1\n&amp;,1900-01,2\n",
			"&amp;\t1900-1909\t1\t2.000\tdegC\n<a & 'b'>\t1900-1909\t1\t1.000\tdegC\n" +
				"&amp;\t1900-1900\t1\t-\tdegC/century\n<a & 'b'>\t1900-1900\t1\t-\tdegC/century\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes(t, func(t *testing.T, n node) {
				table, plot := n.climate(t, write(t, "a file.csv", c.in))
				if table != top+c.want {
					t.Errorf("got\n%s\nwant\n%s", table, top+c.want)
				}
				for d := xml.NewDecoder(strings.NewReader(plot)); ; {
					if _, err := d.Token(); err == io.EOF {
						break
					} else if err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// Files and directories may be mixed; in a directory only *.csv counts, and no directory below.
func TestInputs(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b c.csv": "Source,Year,Mean\nA,1900-01,1\n", "README.md": "not a record\n", "sub.csv/x.csv": "nor this\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	nodes(t, func(t *testing.T, n node) {
		table, _ := n.climate(t, dir, write(t, "more.txt", "Source,Year,Mean\nA,1900-02,3\n"))
		if !strings.Contains(table, "\nA\t1900-1909\t2\t2.000\tdegC\n") {
			t.Errorf("got\n%s", table)
		}
	})
}

// A thousand years of records far from zero, with a trend that is tiny beside them, lose nothing: the
// numbers behind the table are right to 1e-9 degrees (and degrees per century).
func TestPrecision(t *testing.T) {
	var in strings.Builder
	in.WriteString("Source,Year,Mean\n")
	for m := range 12000 {
		fmt.Fprintf(&in, "A,%04d-%02d,%.7f\n", 1000+m/12, m%12+1, 999.0+float64(m)*1e-7+float64(m*7919%1000)*1e-7)
	}
	s := parse(t, in.String())["A"]
	probe := write(t, "probe.awk", `END { study(); printf "%.17g", slope["A"] * 1200
		for (d = 100; d < 200; d++) printf " %.17g", mean["A", d] }`)
	here, err := filepath.Abs("app")
	if err != nil {
		t.Fatal(err)
	}
	script := write(t, "probe.sh", fmt.Sprintf("awk -f '%[1]s/records.awk' | awk -f '%[1]s/stats.awk' -f '%[2]s'\n", here, probe))
	nodes(t, func(t *testing.T, n node) {
		input := write(t, "fed", "\001file a\n"+in.String()+"\n\001end\n\001done\n")
		code, said := n.run(t, write(t, "run.sh", "cat '"+input+"' | { . '"+script+"'; }\n"))
		f := strings.Fields(said)
		if code != 0 || len(f) != 101 {
			t.Fatalf("exit code %d\n%s", code, said)
		}
		if got, want := atof(t, f[0]), s.trend(); !near(got, want, 1e-9) {
			t.Errorf("trend %v, want %v", got, want)
		}
		for d := range int64(100) {
			if got, want := atof(t, f[1+d]), s.mean((100+d)*120, (101+d)*120); !near(got, want, 1e-9) {
				t.Errorf("mean of decade %d: %v, want %v", 100+d, got, want)
			}
		}
	})
}
