package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// joined are signs that put several commands into a line.
var joined = regexp.MustCompile(`&&|\|\|?|;|\$\(|<<`)

// commandsOf counts what must be typed: lines, and commands that are joined in one.
func commandsOf(lines []string) (n int) {
	for _, line := range lines {
		line = strings.TrimSpace(trailingComment.ReplaceAllString(line, ""))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		n += 1 + len(joined.FindAllString(line, -1))
	}
	return n
}

// TestCommandsAreCounted: nothing that is typed hides in a line with others.
func TestCommandsAreCounted(t *testing.T) {
	for text, want := range map[string]int{
		"coterie demo":                       1,
		"# nothing\n\ncoterie demo   # a; b": 1,
		"coterie a\ncoterie b &":             2,
		"a && b; c | d || e":                 5,
		"cat >f <<END":                       2,
		"coterie run $(ls)":                  2,
	} {
		if got := commandsOf(strings.Split(text, "\n")); got != want {
			t.Errorf("%q: %d commands, want %d", text, got, want)
		}
	}
}

// TestFourReaders: each of the four has a way of at most five commands on the first page,
// with a result that is looked for and something to read next, and README sends them there
// before it shows anything else. TestDocuments walks the ways.
func TestFourReaders(t *testing.T) {
	first := readPage(t, "docs/README.md")
	var ways []string
	for _, s := range scenarios {
		if s.page != first.name {
			continue
		}
		ways = append(ways, strings.Join(s.under, " "))
		if s.most != 5 || len(s.says) == 0 {
			t.Errorf("%s: at most %d commands, and %d results are looked for", s.under, s.most, len(s.says))
		}
		_, section, _ := strings.Cut(first.text, "\n## "+s.under[0])
		section, _, _ = strings.Cut(section, "\n## ")
		for _, want := range []string{"```sh", "You get ", "Next: ["} {
			if !strings.Contains(section, want) {
				t.Errorf("%s: the section has no %q", s.under, want)
			}
		}
	}
	if want := []string{"You own data", "You run the server", "You compare methods", "You audit"}; !slices.Equal(ways, want) {
		t.Errorf("the ways are %q, want %q", ways, want)
	}
	for _, b := range first.blocks {
		if !slices.Contains(ways, b.heading) {
			t.Errorf("line %d: a block under %q, which is nobody's way", b.line, b.heading)
		}
	}
	readme := readPage(t, "README.md").text
	before, _, _ := strings.Cut(readme, "```")
	if !strings.Contains(before, "(docs/README.md)") {
		t.Error("README does not link docs/README.md above its first commands")
	}
}

// holdsCount: a way to a first result has no more commands than were promised.
func (w *walk) holdsCount() {
	n := 0
	for _, b := range w.page.blocks {
		if b.typed() && w.takes(b.heading) {
			n += commandsOf(b.lines)
		}
	}
	if n > w.most || n == 0 {
		w.fault("%s, %s: %d commands, at most %d were promised", w.page.name, w.under, n, w.most)
	}
}
