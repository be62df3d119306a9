package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// scenario is what a reader of a page, or of some of its sections, has and gets: its
// commands are run from top to bottom by one shell, in a folder of its own.
type scenario struct {
	page    string
	under   []string          // begins of headings; none: what no other scenario of the page takes
	by      string            // all of it is run by another test: the go test line
	data    bool              // real data are needed; FOLDER names them
	python  bool              // Python blocks are programs: files, or run at once
	prepare string            // shell lines before the page's
	setup   func(*walk)       // or files in Go
	words   map[string]string // what stands for something of the reader's, and the shell text in its place
	lines   []treatment
	shows   []shown
	most    int         // so many commands, if it is the way to a first result
	says    []string    // what must be printed
	after   func(*walk) // what must be there at the end
}

// treatment is for lines that are not run as they stand.
type treatment struct {
	line  string // how they begin
	as    string // shorter: run with this, which the page must show; as it stands with -soak
	over  string // what it is put for; none: it is added
	soak  string // left out without -soak: why
	by    string // run by another test: the go test line
	never string // not run: why
	other bool   // in another terminal: goes on in the background
	exit  int    // the code that it ends with
}

// shown is a block of a page that shows what a command prints.
type shown struct {
	begins  string
	command string
	by      string // another test holds it: the go test line
	not     string // it is no program's output: what it is
}

// walk is one scenario under way.
type walk struct {
	*testing.T
	scenario
	page         *page
	dir, bin     string // where the reader is, and programs of its own
	out          string // what was printed
	faults       []string
	processors   time.Duration
	environment  []string
	replacements []string // ports that the page names, and those in their place
}

func (w *walk) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

func (w *walk) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// takes says whether a heading's commands are this scenario's.
func (s scenario) takes(heading string) bool {
	if len(s.under) == 0 {
		for _, other := range scenarios {
			if other.page == s.page && len(other.under) > 0 && other.takes(heading) {
				return false
			}
		}
		return true
	}
	return slices.ContainsFunc(s.under, func(begin string) bool { return strings.HasPrefix(heading, begin) })
}

// measured is a line that takes minutes, on a machine that does nothing else.
var measured = regexp.MustCompile(`^([A-Z_]+=\S+ )*go test `)

var trailingComment = regexp.MustCompile(`\s+#[^'"]*$`)

// treated is a line as it is run, and a remark if that is not as it stands.
func (w *walk) treated(line string, used map[int]bool) (run, remark string) {
	for i, one := range w.lines {
		if !strings.HasPrefix(line, one.line) {
			continue
		}
		used[i] = true
		bare := trailingComment.ReplaceAllString(line, "")
		switch {
		case one.by != "":
			if err := mentionedTests(strings.Fields(one.by)[1:]); err != nil {
				w.fault("%q is run by %s: %v", one.line, one.by, err)
			}
			return "", "run by " + one.by
		case one.never != "":
			return "", "not run: " + one.never
		case one.soak != "" && !*soak:
			return "", "left out without -soak: " + one.soak
		case one.as != "" && !*soak:
			if !strings.Contains(w.page.text, one.as) || !strings.Contains(bare, one.over) {
				w.fault("%s does not show %q, or %q has no %q to put it for", w.page.name, one.as, bare, one.over)
			}
			if one.over == "" {
				return bare + " " + one.as, "with " + one.as
			}
			return strings.Replace(bare, one.over, one.as, 1), "with " + one.as
		case one.other:
			return bare + " 2>>other-terminal.log &", ""
		case one.exit != 0:
			return fmt.Sprintf("code=0; %s || code=$?; [ $code = %d ]", bare, one.exit), ""
		}
	}
	if measured.MatchString(line) && !*soak {
		return "", "left out without -soak: it measures for minutes; the tests that it names are there"
	}
	return line, ""
}

// standsAlone finds a word that is not a part of another one.
func standsAlone(word string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(word) + `($|[^\w-])`)
}

// script has every command at the line where the page has it, so that what bash says of a
// line is of the page's.
func (w *walk) script() string {
	lines := make([]string, strings.Count(w.page.text, "\n")+2)
	used, words := map[int]bool{}, map[string]bool{}
	if w.data {
		w.words = maps.Clone(w.words)
		if w.words == nil {
			w.words = map[string]string{}
		}
		w.words["FOLDER"], words["FOLDER"] = os.Getenv("COTERIE_DATA"), true
	}
	add := func(number int, line string) {
		line, remark := w.treated(strings.TrimPrefix(line, "$ "), used)
		if remark != "" {
			w.Logf("%s:%d %s", w.page.name, number, remark)
		}
		for word, text := range w.words {
			if standsAlone(word).MatchString(line) {
				words[word] = true
				line = standsAlone(word).ReplaceAllString(line, "${1}"+strings.ReplaceAll(text, "$", "$$")+"${2}")
			}
		}
		line = inBackground.ReplaceAllString(line, `${1}& background+=" $$!"`)
		if lines[number] != "" && line != "" {
			line = "; " + line
		}
		lines[number] += line
	}
	for _, b := range w.page.blocks {
		switch {
		case !w.takes(b.heading):
		case b.typed():
			for i, line := range b.lines {
				add(b.line+i, line)
			}
		case w.python && b.language == "python":
			name, run := fmt.Sprintf("block%d.py", b.line), true
			if m := programFile.FindStringSubmatch(b.lines[0] + "\n"); m != nil {
				name, run = m[1], false
			}
			lines[b.line-1] = "cat >" + name + " <<'PYTHON'"
			copy(lines[b.line:], b.lines)
			lines[b.line+len(b.lines)] = "PYTHON"
			if run {
				lines[b.line+len(b.lines)+1] = "python3 " + name
			}
		}
	}
	for _, s := range w.page.spans {
		if w.takes(s.heading) {
			if typed, _ := mentioned(s.text); typed {
				add(s.line, s.text)
			}
		}
	}
	for i, one := range w.lines {
		if !used[i] {
			w.fault("no line of %s begins with %q", w.page.name, one.line)
		}
	}
	for word := range w.words {
		if !words[word] {
			w.fault("no line of %s has the word %s", w.page.name, word)
		}
	}
	return w.local(strings.Join(lines[1:], "\n"))
}
