package climate

import (
	"math"
	"math/big"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// decadeMean is what the independent computation says of one decade.
type decadeMean struct {
	months int
	mean   float64
}

// sortedMeans works the decade means out in another way than the application does: the records are
// sorted, and a decade is over when the first three digits of its year change. The keys are the
// first two fields of the table.
func sortedMeans(t *testing.T, records string) map[[2]string]decadeMean {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(records, "*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no records in %s: %v", records, err)
	}
	const program = `
		for f; do tail -n +2 "$f"; done | LC_ALL=C sort -t, -k1,1 -k2,2 | awk -F, '
		function flush() { if (n) printf "%s\t%s0-%s9\t%d\t%.9f\n", s, d, d, n, total / n / 10000 }
		{ key = $1 "," substr($2, 1, 3) }
		key != last { flush(); n = total = 0; last = key; s = $1; d = substr($2, 1, 3) }
		{ n++; total += 10000 * $3 }
		END { flush() }'`
	out, err := exec.Command(peer(t, "sh"), append([]string{"-c", program, "means"}, files...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	means := map[[2]string]decadeMean{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		means[[2]string{f[0], f[1]}] = decadeMean{atoi(t, f[2]), atof(t, f[3])}
	}
	return means
}

// series is the records of one source: months since the year 0, and exact means.
type series struct {
	months []int64
	means  []*big.Rat
}

// parse reads well-formed records.
func parse(t *testing.T, text string) map[string]*series {
	t.Helper()
	all := map[string]*series{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if f[0] == "Source" {
			continue
		}
		mean, ok := new(big.Rat).SetString(f[2])
		if !ok {
			t.Fatalf("record %q", line)
		}
		if all[f[0]] == nil {
			all[f[0]] = &series{}
		}
		s := all[f[0]]
		s.months = append(s.months, int64(atoi(t, f[1][:4])*12+atoi(t, f[1][5:])-1))
		s.means = append(s.means, mean)
	}
	return all
}

// trend is the least squares slope in degrees per century, (n Σxy - Σx Σy) / (n Σx² - (Σx)²), in
// exact arithmetic.
func (s *series) trend() float64 {
	n := big.NewRat(int64(len(s.months)), 1)
	sx, sy, sxx, sxy := new(big.Rat), new(big.Rat), new(big.Rat), new(big.Rat)
	for i, m := range s.months {
		x, y := big.NewRat(m, 1200), s.means[i]
		sx.Add(sx, x)
		sy.Add(sy, y)
		sxx.Add(sxx, mul(x, x))
		sxy.Add(sxy, mul(x, y))
	}
	above := new(big.Rat).Sub(mul(n, sxy), mul(sx, sy))
	below := new(big.Rat).Sub(mul(n, sxx), mul(sx, sx))
	slope, _ := above.Quo(above, below).Float64()
	return slope
}

// mean is the exact mean of the months from a until before b, rounded once.
func (s *series) mean(a, b int64) float64 {
	sum, n := new(big.Rat), int64(0)
	for i, m := range s.months {
		if a <= m && m < b {
			sum.Add(sum, s.means[i])
			n++
		}
	}
	mean, _ := sum.Quo(sum, big.NewRat(n, 1)).Float64()
	return mean
}

func mul(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func atof(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }
