package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// block is what a page shows apart from its running text: fenced or indented lines.
type block struct {
	language string // of a fence, "" if it names none
	heading  string // the nearest one above
	line     int    // of its first text line, from 1
	fenced   bool
	lines    []string
}

// mention is a piece of code in running text.
type mention struct {
	heading, text string
	line          int
}

// page is one document: what it shows and names, by line.
type page struct {
	name     string // README.md, docs/audit.md
	text     string
	headings []string
	blocks   []block
	spans    []mention
}

var (
	fence     = regexp.MustCompile("^\\s*(```+|~~~+)\\s*([\\w-]*)")
	title     = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*$`)
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	shellName = []string{"sh", "bash", "shell", "console", "shell-session", "zsh"}
	// program begins a line that is meant to be typed, whatever its block is marked as.
	program = regexp.MustCompile(`^(\$ )?(sudo )?([A-Z_]+=\S* )*(coterie|go|curl|wget|psql|pg_dump|pg_restore|docker|podman|buildah|systemctl|systemd-analyze|journalctl|openssl|python3?|pip3?|npm|node|git|apt-get|kill|tar|sqlite3|\./scripts/\S+)( |$)`)
)

// readPage finds a page's blocks and code spans.
func readPage(t *testing.T, name string) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tier.Root(), name))
	if err != nil {
		t.Fatal(err)
	}
	return parsePage(name, string(text))
}

func parsePage(name, text string) *page {
	p := &page{name: name, text: text}
	var open *block // the block that a line may go on with
	var closing, heading string
	blank := true
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		mark := fence.FindStringSubmatch(line)
		switch {
		case closing != "" && mark != nil && strings.HasPrefix(mark[1], closing) && mark[2] == "":
			p.blocks, open, closing = append(p.blocks, *open), nil, ""
		case closing != "":
			open.lines = append(open.lines, line)
		case mark != nil:
			open, closing = &block{language: mark[2], heading: heading, line: number + 1, fenced: true}, mark[1]
		case strings.HasPrefix(line, "    ") && (blank || open != nil):
			if open == nil {
				open = &block{heading: heading, line: number}
			}
			open.lines = append(open.lines, line[4:])
		default:
			if open != nil {
				p.blocks, open = append(p.blocks, *open), nil
			}
			if m := title.FindStringSubmatch(line); m != nil {
				heading = m[1]
				p.headings = append(p.headings, heading)
			}
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				p.spans = append(p.spans, mention{heading, m[1], number})
			}
		}
		blank = strings.TrimSpace(line) == ""
	}
	if open != nil {
		p.blocks = append(p.blocks, *open)
	}
	return p
}

// typed says whether a block's lines are commands.
func (b block) typed() bool {
	return slices.Contains(shellName, b.language) ||
		b.language != "python" && slices.ContainsFunc(b.lines, program.MatchString)
}

// shown says whether a block shows what a program prints.
func (b block) shown() bool {
	return b.fenced && !b.typed() && slices.Contains([]string{"", "text", "json", "console", "output"}, b.language)
}

// pages are those of the checkout's first folder, and every page of docs.
func pages(t *testing.T) []*page {
	t.Helper()
	all := []*page{readPage(t, "README.md"), readPage(t, "CONTRIBUTING.md"), readPage(t, "SECURITY.md"), readPage(t, "python/README.md")}
	err := filepath.WalkDir(filepath.Join(tier.Root(), "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			name, _ := filepath.Rel(tier.Root(), path)
			all = append(all, readPage(t, filepath.ToSlash(name)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPagesAreRead: what is typed, shown or named is found however it is marked.
func TestPagesAreRead(t *testing.T) {
	p := parsePage("x.md", strings.Join([]string{
		"# One", "Say `coterie run` or `a b`.", "```sh", "ls", "```", "```", "coterie demo", "```", "~~~text", "coterie: no", "```", "~~~",
		"## Two", "", "    curl -s localhost", "    # more", "text", "    no block", "- item", "  ```yaml", "  coterie: x", "  ```", "```json", "{}", "```", "", "    last",
	}, "\n"))
	type found struct {
		heading, first string
		line           int
		typed, shown   bool
	}
	var got []found
	for _, b := range p.blocks {
		got = append(got, found{b.heading, b.lines[0], b.line, b.typed(), b.shown()})
	}
	want := []found{
		{"One", "ls", 4, true, false}, {"One", "coterie demo", 7, true, false}, {"One", "coterie: no", 10, false, true},
		{"Two", "curl -s localhost", 15, true, false}, {"Two", "  coterie: x", 21, false, false}, {"Two", "{}", 24, false, true}, {"Two", "last", 27, false, false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("blocks are\n%v, want\n%v", got, want)
	}
	if want := []mention{{"One", "coterie run", 2}, {"One", "a b", 2}}; !slices.Equal(p.spans, want) {
		t.Errorf("spans are %v, want %v", p.spans, want)
	}
	for line, want := range map[string]bool{
		"coterie demo": true, "coterie: no": false, "  indented coterie": false, "$ coterie version": true, "sudo systemctl start x": true,
		"COTERIE_DATA=x go test ./sim": true, "./scripts/test": true, "coteries all": false, "kill -9 1": true, "killed": false,
	} {
		if program.MatchString(line) != want {
			t.Errorf("%q: typed %v, want %v", line, !want, want)
		}
	}
}

var pageLink = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)\s]*)?\)`)

// TestPagesAreFound: the first page of docs lists every other one, and what a page links
// is there.
func TestPagesAreFound(t *testing.T) {
	listed := map[string]bool{}
	all := pages(t)
	for _, p := range all {
		for _, m := range pageLink.FindAllStringSubmatch(p.text, -1) {
			file := filepath.Join(filepath.Dir(p.name), m[1])
			if _, err := os.Stat(filepath.Join(tier.Root(), file)); err != nil {
				t.Errorf("%s links %s, which is not there", p.name, m[1])
			}
			if p.name == "docs/README.md" {
				listed[filepath.ToSlash(file)] = true
			}
		}
	}
	for _, p := range all {
		if name := p.name; name != "docs/README.md" && filepath.ToSlash(filepath.Dir(name)) == "docs" && !listed[name] {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}
