package readmetest

import (
	"slices"
	"testing"
)

const sample = `# A title

    not a step

## Before

    nor this

## Step by step

Prose, which says why.

    mkdir a
    ls |
        wc

Leave it running:

    skeletonkey serve --root a

    cat b

which says

    one
    two

## After

    nor this
`

func TestSteps(t *testing.T) {
	got, err := steps(sample, "Step by step")
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{run, 13, "mkdir a\nls |\n    wc\n"},
		{serve, 19, "skeletonkey serve --root a\n"},
		{run, 21, "cat b\n"},
		{says, 25, "one\ntwo\n"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := steps(sample, "Step"); err == nil {
		t.Error("a section that is not there was found")
	}
}

func TestEndsWith(t *testing.T) {
	for _, c := range []struct {
		out, text string
		want      bool
	}{
		{"a\nb\n", "b\n", true},
		{"b\n", "b\n", true},
		{"ab\n", "b\n", false},
		{"b\na\n", "b\n", false},
		{"", "b\n", false},
	} {
		if endsWith(c.out, c.text) != c.want {
			t.Errorf("%q ends with %q: want %v", c.out, c.text, c.want)
		}
	}
}
