package job

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Case 36: the words of a shell, nothing expanded.
func TestSplitArguments(t *testing.T) {
	for in, want := range map[string][]string{
		``:                             nil,
		"  \t ":                        nil,
		`a  b`:                         {"a", "b"},
		`'two words' "two words"`:      {"two words", "two words"},
		`two\ words`:                   {"two words"},
		`'' ""`:                        {"", ""},
		`'a;touch X' a\;b`:             {"a;touch X", "a;b"},
		`$(id) "$(id)" '$(id)'`:        {"$(id)", "$(id)", "$(id)"},
		`$(id -u) $((1 + 2))`:          {"$(id -u)", "$((1 + 2))"},
		"`id -u` \"`id -u`\"":          {"`id -u`", "`id -u`"},
		`$x "${x:-a b}" ${x:-a b}`:     {"$x", "${x:-a b}", "${x:-a b}"},
		`\$x "\$x" '\$x'`:              {"$x", "$x", `\$x`},
		`~ ~bob/x *.c [a-z] {a,b} ?`:   {"~", "~bob/x", "*.c", "[a-z]", "{a,b}", "?"},
		`"a\b\"c\\d" \\ \n`:            {`a\b"c\d`, `\`, "n"},
		`pre'in'"side"post`:            {"preinsidepost"},
		`a#b --x=y#z "#c"`:             {"a#b", "--x=y#z", "#c"},
		`x=1 if { } ! --`:              {"x=1", "if", "{", "}", "!", "--"},
		"'line\nfeed' b\nc":            {"line\nfeed", "b", "c"},
		`é 'naïve ü'`:                  {"é", "naïve ü"},
		`a\`:                           {`a\`},
		`a$ "b$" c%20d "%(none)s" %Y`:  {"a$", "b$", "c%20d", "%(none)s", "%Y"},
		`"a'b" 'c"d'`:                  {"a'b", `c"d`},
		`https://h/a\&b 'https://h?&'`: {"https://h/a&b", "https://h?&"},
	} {
		got, err := SplitArguments(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
	}
}

func TestSplitArgumentsRefuses(t *testing.T) {
	for _, in := range []string{
		`a;b`, `%(x)s`, `a & b`, `a | b`, `a > f`, `a 2>f`, `a < f`, `(a)`, `x=(a b)`, `'open`, `"open`, "`open", `$(open`, `${open`,
		`a #b`, `#b`, "a #b\nc", "a\x00b", "a\rb",
	} {
		if got, err := SplitArguments(in); err == nil {
			t.Errorf("%q was split into %q", in, got)
		}
	}
}

// shellWords returns what a real shell makes of words; globbing is off.
func shellWords(t *testing.T, shell, words string) []string {
	t.Helper()
	out, err := exec.Command(shell, "-c", "set -f; show() { for w; do printf '%s\\0' \"$w\"; done; }; show "+words).Output()
	if err != nil {
		t.Fatalf("%s: %q: %v", shell, words, err)
	}
	if len(out) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00")
}

// TestSplitAsShellsDo holds our splitting against a real shell, for words without expansions.
func TestSplitAsShellsDo(t *testing.T) {
	shell, err := exec.LookPath("dash")
	if err != nil {
		if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, words := range []string{
		`a b\ c 'd e' "f g"`, `\a "\a" '\a'`, `"\$x \" \\ \q" x`, `'a'"b"c\d`, `'' "" x`, `*.c ? [a-z]`, `{a,b} x=1 if then`,
		`a#b '#c' \#d`, `"it's" 'say "x"'`, `%s "%(x)s" a%20b`, `\\ \\\\ "\\"`, `$'x' $"y"`, `a$ "$" !x`, "'a\nb' c", `é\ ü "ß"`,
	} {
		got, err := SplitArguments(words)
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		if d := cmp.Diff(shellWords(t, shell, words), got); d != "" {
			t.Errorf("%s (-shell +ours):\n%s", words, d)
		}
	}
}

func FuzzSplitArguments(f *testing.F) {
	for _, s := range []string{`a 'b c' "d\"e"`, "$(id -u) `x` ${y:-z}", `a;b`, `#c`, `\`, `$((1`, `"$(echo "a b")"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := SplitArguments(s)
		if err != nil {
			return
		}
		// What was split can be written so that it is split into the same again.
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := SplitArguments(strings.Join(quoted, " "))
		if err != nil || !cmp.Equal(words, again) {
			t.Errorf("%q -> %q -> %q, %v", s, words, again, err)
		}
	})
}
