package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestDocuments executes every command of README.md and docs: scenario by scenario, in the
// order of the page, and holds what is left against what the page says.
func TestDocuments(t *testing.T) {
	for _, s := range scenarios {
		t.Run(strings.Join(append([]string{s.page}, s.under...), " "), func(t *testing.T) {
			if s.data && os.Getenv("COTERIE_DATA") == "" {
				t.Skip("COTERIE_DATA is not set: see README, real data")
			}
			w := &walk{T: t, scenario: s, page: readPage(t, s.page), dir: t.TempDir()}
			if s.by == "" {
				w.run()
			} else if err := mentionedTests(strings.Fields(s.by)[1:]); err != nil {
				w.fault("it is run by %s: %v", s.by, err)
			}
			for _, fault := range w.faults {
				t.Error(fault)
			}
		})
	}
}

// TestEveryCommandIsWalked: a page with commands that no scenario takes fails, and so does
// a scenario whose page or section is gone.
func TestEveryCommandIsWalked(t *testing.T) {
	all := pages(t)
	for _, fault := range notWalked(all) {
		t.Error(fault)
	}
	for _, s := range scenarios {
		i := slices.IndexFunc(all, func(p *page) bool { return p.name == s.page })
		if i < 0 {
			t.Errorf("there is a scenario for %s, which is gone", s.page)
			continue
		}
		for _, begin := range s.under {
			if !slices.ContainsFunc(all[i].headings, func(h string) bool { return strings.HasPrefix(h, begin) }) {
				t.Errorf("there is a scenario for %s, %s, which is gone", s.page, begin)
			}
		}
	}
	for _, name := range notCommands {
		if !slices.ContainsFunc(all, func(p *page) bool { return strings.Contains(p.text, "`"+name) }) {
			t.Errorf("no page says %q", name)
		}
	}
}

// notWalked lists what nobody runs: blocks and spans with commands, programs, shown output,
// and commands in running text that the program does not have.
func notWalked(all []*page) (faults []string) {
	for _, p := range all {
		walked := func(heading string, also func(scenario) bool) bool {
			return slices.ContainsFunc(scenarios, func(s scenario) bool { return s.page == p.name && s.takes(heading) && also(s) })
		}
		say := func(line int, what string) { faults = append(faults, p.name+":"+strconv.Itoa(line)+": "+what) }
		for _, b := range p.blocks {
			switch {
			case b.typed():
				if !walked(b.heading, func(scenario) bool { return true }) {
					say(b.line, "no scenario runs these commands: "+b.lines[0])
				}
				for i, line := range b.lines {
					line = trailingComment.ReplaceAllString(strings.TrimPrefix(line, "$ "), "")
					if strings.HasPrefix(line, "coterie ") {
						if _, err := mentioned(strings.TrimSuffix(line, " &")); err != nil {
							say(b.line+i, err.Error())
						}
					}
				}
			case b.language == "python":
				if !walked(b.heading, func(s scenario) bool { return s.python }) {
					say(b.line, "no scenario runs this program")
				}
			case b.shown():
				if !walked(b.heading, func(s scenario) bool {
					return slices.ContainsFunc(s.shows, func(one shown) bool { return strings.HasPrefix(b.lines[0], one.begins) })
				}) {
					say(b.line, "no scenario says whose output this is: "+b.lines[0])
				}
			}
		}
		for _, s := range p.spans {
			typed, err := mentioned(s.text)
			if err != nil {
				say(s.line, "`"+s.text+"`: "+err.Error())
			} else if typed && !walked(s.heading, func(scenario) bool { return true }) {
				say(s.line, "no scenario runs `"+s.text+"`")
			}
		}
	}
	return faults
}

// TestWalksFail: what goes wrong on a page is found, and the line is named.
func TestWalksFail(t *testing.T) {
	sh := func(lines ...string) string { return "# P\n```sh\n" + strings.Join(lines, "\n") + "\n```\n" }
	for _, c := range []struct {
		text, want string
		s          scenario
	}{
		{text: sh("true", "coterie version"), s: scenario{says: []string{"kernel"}}},
		{text: sh("true", "coterie vershun"), want: "page.md:4: exit code 2"},
		{text: sh("coterie account metric --dimension 2 --noise-multiplier 5 --releases 6 --distance 0.7"), want: "page.md:3: exit code 2"},
		{text: sh("(exit 7) &", "true &", "wait"), want: "exit code 7"},
		{text: sh("(exit 7) &", "true &", "wait $!")},
		{text: sh("echo $UNSET"), want: "UNSET: unbound variable"},
		{text: sh("coterie version"), want: "nobody looks at it"},
		{text: sh("coterie version"), s: scenario{says: []string{"another word"}}, want: `do not say "another word"`},
		{text: sh("coterie nothing"), s: scenario{lines: []treatment{{line: "coterie nothing", exit: 2}}, says: []string{"unknown command"}}},
		{text: sh("coterie version"), s: scenario{lines: []treatment{{line: "coterie version", exit: 2}}}, want: "page.md:3: exit code 1"},
		{text: sh("sleep 600"), s: scenario{lines: []treatment{{line: "sleep", other: true}}}},
		{text: sh("coterie version --long # or --short"), s: scenario{lines: []treatment{{line: "coterie", over: "--long", as: "--output json"}}}, want: `does not show "--output json"`},
		{text: sh("coterie version --long # or --output json"), s: scenario{lines: []treatment{{line: "coterie", over: "--long", as: "--output json"}}, says: []string{`"kernel"`}}},
		{text: sh("false"), s: scenario{lines: []treatment{{line: "false", by: "go test ./cmd/coterie -run TestWalksFail"}}}},
		{text: sh("false"), s: scenario{lines: []treatment{{line: "false", by: "go test ./cmd/coterie -run TestGone"}}}, want: "matched by TestGone"},
		{text: sh("true"), s: scenario{lines: []treatment{{line: "false", never: "gone"}}}, want: `no line of page.md begins with "false"`},
		{text: sh("true"), s: scenario{words: map[string]string{"NAME": "x"}}, want: "no line of page.md has the word NAME"},
		{text: sh("[ NAME-NAME1,NAME = NAME-NAME1,x ]"), s: scenario{words: map[string]string{"NAME": "x"}}},
		{text: sh("a=127.0.0.1:7443", "[ $a != 127.0.0.1:$((7442 + 1)) ]", "[ $a = 127.0.0.1:7443 ]")},
		{text: "Say `coterie version --output json` and `coterie account`.", s: scenario{says: []string{`"kernel"`}}},
		{text: "Say\n`coterie account nothing.csv`.", want: "there is no command nothing.csv"},
		{text: "```\ncoterie: a … c\nd\n```\n", s: scenario{shows: []shown{{begins: "coterie:", command: "echo coterie: a b c; echo d"}}}},
		{text: "```\ncoterie: a … c\n```\n", s: scenario{shows: []shown{{begins: "coterie:", command: "echo coterie: a b"}}}, want: "which is not printed"},
		{text: "```\nx\n```\n", s: scenario{shows: []shown{{begins: "x", by: "go test ./cmd/coterie -run TestGone"}}}, want: "page.md:2 is held by go test ./cmd/coterie -run TestGone"},
		{text: sh("echo 1", "echo 2", "echo 3"), s: scenario{most: 3, says: []string{"3"}}},
		{text: sh("echo 1", "echo 2; echo 3"), s: scenario{most: 2}, want: "3 commands, at most 2"},
		{text: "```python\nprint(6 * 7)\n```\n\nEnd.", s: scenario{python: true, says: []string{"42"}}},
		{text: "```python\n# kept.py\nprint(6 * 7)\n```\n```sh\n! ls block*\npython3 kept.py\n```\n", s: scenario{python: true, says: []string{"42"}}},
	} {
		w := &walk{T: t, scenario: c.s, page: parsePage("page.md", c.text), dir: t.TempDir()}
		if c.s.python {
			tier.PythonProgram(t)
		}
		w.scenario.page = "page.md"
		for _, s := range w.page.spans {
			if _, err := mentioned(s.text); err != nil {
				w.fault("%v", err)
			}
		}
		w.run()
		if got := strings.Join(w.faults, "\n"); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: %s\nwant %q", c.text, got, c.want)
		}
	}
}

// TestNotWalkedIsFound: commands that no scenario takes are named, however they are shown.
func TestNotWalkedIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"```sh\nls\n```":                         "page.md:2: no scenario runs these commands: ls",
		"a\n\n    curl -s x":                     "page.md:3: no scenario runs these commands: curl -s x",
		"```text\ncoterie demo\n```":             "page.md:2: no scenario runs these commands: coterie demo",
		"```python\nprint()\n```":                "page.md:2: no scenario runs this program",
		"```\nwhat is printed\n```":              "page.md:2: no scenario says whose output this is: what is printed",
		"say `coterie run x.yaml --seed 7` once": "page.md:1: no scenario runs `coterie run x.yaml --seed 7`",
		"say `coterie run --seedling`":           "page.md:1: `coterie run --seedling`: coterie run has no flag --seedling",
		"say `go test ./sim -run TestMissing`":   "page.md:1: `go test ./sim -run TestMissing`: no test of these packages is matched by TestMissing",
		"say `coterie run` or `FILE`":            "",
		"```yaml\nname: x\n```":                  "",
	} {
		if got := strings.Join(notWalked([]*page{parsePage("page.md", text)}), "\n"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
