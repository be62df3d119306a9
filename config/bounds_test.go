package config

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
)

// hostile are texts of about n bytes that a parser may stumble over, by name.
func hostile(n int) map[string]string {
	r := func(s string) string { return strings.Repeat(s, n/len(s)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	stairs := func(line string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(" ", i) + line)
		}
		return b.String()
	}
	laughs := func() string {
		var b strings.Builder
		b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
		for i := range 12 {
			fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
		}
		return b.String()
	}
	return map[string]string{
		"brackets left open": r("["), "brackets closed": strings.Repeat("[", n/2) + strings.Repeat("]", n/2),
		"braces": r("{a: "), "braces alone": r("{"), "both brackets": r("[{"), "mismatched": r("{[}"), "closed only": r("]"),
		"dashes on a line": r("- "), "dashes on lines": r("-\n"), "question marks": r("? "), "question lines": r("?\n"),
		"keys on a line": r("a: "), "colons": r(": "), "nested blocks": stairs("a:\n"), "nested lists": stairs("-\n"),
		"anchors": "a: " + r("&a "), "aliases": "a: &a 1\nb: [" + r("*a,") + "]", "a billion laughs": laughs(), "tags": "a: " + r("!!str "),
		"merges": "a: &a {b: 1}\n" + r("c:\n  <<: *a\n"), "less than": r("<"), "less than twice": r("<< "),
		"keys": numbered("k%d: 1\n"), "the same key": r("a: 1\n"), "keys with carriage returns": r("a: 1\r\n"), "blocks": numbered("k%d:\n  a: 1\n"),
		"keys in braces": "{" + r("a: 1, ") + "}", "documents": r("---\na: 1\n"), "document ends": r("...\n"), "directives": r("%YAML 1.2\n"),
		"a long key": strings.Repeat("k", n/2) + ":\n" + strings.Repeat("  - 1\n", n/12), "a long key in braces": "{" + strings.Repeat("k", n/2) + ": [" + strings.Repeat("1,", n/4) + "]}",
		"a long text": "a: " + r("x"), "long words": "a: " + r("x "), "lines of text": "a:\n" + r("  x\n"), "texts at the margin": "a:\n" + r("b\n"),
		"quotes": r("\""), "single quotes": r("'"), "a quoted text": "a: \"" + r("x") + "\"", "tabs in quotes": "a: \"" + r("\t"), "tabs in a text": "a: x" + r("\t"),
		"tabs": r("\t"), "an open quote": "a: \"" + r("\n"), "escapes": "a: \"" + r("\\n") + "\"", "literal": "a: |\n" + r("  x\n"), "literals": r("a: |\n  x\n"),
		"folded": "a: >\n" + r("  x\n\n"), "a literal that ends in empty lines": "a: |\n  " + strings.Repeat("x", n/2) + strings.Repeat("\n", n/2), "a literal of blanks": "|\n" + r("\n  "),
		"keys in brackets": "[\n[\n" + r("x\n  ...\nb: 1"), "pipes": r("|\n"), "comments": r("#\n"), "comments in brackets": "a: [" + r("#\n") + "]",
		"commas": "a: [" + r(",") + "]", "numbers": "a: [" + r("1,") + "]", "items": "a:\n" + r("- 1\n"), "blocks in a list": "a:\n" + r("  - name: x\n    epsilon: 1\n"),
		"empty lines": r("\n"), "blanks": r(" "), "returns": r("\r"), "zeros": r("\x00"), "not UTF-8": "a: " + r("\xff"), "reserved": r("@"), "digits": "a: " + r("9"), "dots": r("."), "minus": r("-"),
	}
}

// allocated is how many bytes f takes, garbage included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// most is what reading one text may allocate in all; what lives at once is less.
const most = 300 << 20

// TestHostileYAMLTakesLittleMemory: small texts first, so that a parser that grows
// without bound fails here and does not take the machine with it.
func TestHostileYAMLTakesLittleMemory(t *testing.T) {
	for _, size := range []int{20_000, 400_000, MaxBytes} {
		allowed := min(uint64(most), 64<<20+uint64(size)*400)
		for name, text := range hostile(size) {
			text := text[:min(len(text), MaxBytes)]
			var err error
			if got := allocated(func() { _, err = Load([]byte(text)) }); got > allowed {
				t.Errorf("%s, %d bytes: %d MB were allocated, at most %d are allowed (%.80v)", name, len(text), got>>20, allowed>>20, err)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

func TestBoundsOfYAML(t *testing.T) {
	nested := func(n int) string { return "a: " + strings.Repeat("[", n) + strings.Repeat("]", n) }
	lines := func(n int, f string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, f, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ good, bad, part string }{
		"brackets":   {nested(maxDepth - 1), nested(maxDepth), "deep"},
		"blocks":     {stairsOf(maxDepth, "a:\n"), stairsOf(maxDepth+1, "a:\n"), "deep"},
		"lists":      {strings.Repeat("- ", maxDepth), strings.Repeat("- ", maxDepth+1), "deep"},
		"keys":       {lines(maxBlockKeys, "k%d: 1\n"), lines(maxBlockKeys+1, "k%d: 1\n"), "1000 keys"},
		"a key":      {strings.Repeat("k", maxKeyBytes) + ": 1", strings.Repeat("k", maxKeyBytes+1) + ": 1", "allowed: 128"},
		"aliases":    {"a: &a 1\nb: [" + strings.Repeat("*a, ", maxReferences-1) + "1]", "a: &a 1\nb: [" + strings.Repeat("*a, ", maxReferences) + "1]", "write the values out"},
		"documents":  {strings.Repeat("---\n", maxDocuments), strings.Repeat("---\n", maxDocuments+1), "documents"},
		"marks":      {"a: [" + strings.Repeat("1,", maxMarks-3) + "]", "a: [" + strings.Repeat("1,", maxMarks-2) + "]", "100000"},
		"bytes":      {"a: " + strings.Repeat("x", MaxBytes-3), "a: " + strings.Repeat("x", MaxBytes-2), "larger than"},
		"tabs":       {"# " + strings.Repeat("\t", maxTabs), "# " + strings.Repeat("\t", maxTabs+1), "tabs"},
		"no lines":   {"a: 1" + strings.Repeat("\n", maxEmptyLines+1) + "b: 2", "a: 1" + strings.Repeat("\n  ", 2*maxEmptyLines+3) + "b: 2", "empty lines"},
		"flow keys":  {"a: {" + lines(5000, "k%d: 1, ") + "}", "a: [" + lines(maxBlockKeys+1, "k%d: 1\n  ") + "]", "1000 keys"},
		"? keys":     {"a: ?b", "? a\n: b", "?"},
		"many items": {"a:\n" + lines(20_000, "  - site-%d\n"), "", ""},
		"many silos": {"a:\n" + lines(5000, "  - name: site-%d\n    epsilon: 1\n    delta: 1.0e-5\n"), "", ""},
	} {
		if err := Bounded([]byte(c.good)); err != nil {
			t.Errorf("%s: what is within bounds is refused: %v", name, err)
		}
		if c.part == "" {
			continue
		}
		var faults Faults
		if err := Bounded([]byte(c.bad)); !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line < 1 || faults[0].Column < 1 || !strings.Contains(faults[0].Message, c.part) {
			t.Errorf("%s: want one located fault with %q, got %.200v", name, c.part, err)
		}
	}
}

func stairsOf(n int, line string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + line)
	}
	return b.String()
}

// depthOf is how deep the parsed values stand in one another.
func depthOf(n ast.Node) int {
	deepest := 0
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			deepest = max(deepest, depthOf(v))
		}
	case *ast.MappingValueNode:
		return 1 + max(depthOf(n.Key), depthOf(n.Value))
	case *ast.SequenceNode:
		for _, v := range n.Values {
			deepest = max(deepest, depthOf(v))
		}
		return 1 + deepest
	case *ast.AnchorNode:
		return depthOf(n.Value)
	case *ast.TagNode:
		return depthOf(n.Value)
	}
	return deepest
}

// FuzzBounds repeats what the fuzzer writes, since one piece is never large: whatever
// passes the bounds is parsed within them.
func FuzzBounds(f *testing.F) {
	for _, text := range hostile(24) {
		f.Add("", text, uint16(5000))
	}
	f.Add("a:\n", "  - {b: [1, 2], c: 'x'} # y\n", uint16(2000))
	f.Fuzz(func(t *testing.T, before, piece string, times uint16) {
		if len(before) > 4000 || len(piece) == 0 || len(piece) > 4000 {
			return
		}
		text := []byte(before + strings.Repeat(piece, min(int(times), 200_000/len(piece))))
		var node ast.Node
		if got := allocated(func() { node, _ = parse(text) }); got > most {
			t.Errorf("%d bytes allocated for %d", got, len(text))
		}
		if depthOf(node) > 2*maxDepth { // a list may stand at its key's own column
			t.Errorf("values stand %d deep; allowed: %d", depthOf(node), 2*maxDepth)
		}
	})
}
