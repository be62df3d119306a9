package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coterie-fl/coterie/internal/tier"
)

// notCommands are code spans that begin like a command and are something else.
var notCommands = []string{
	"coterie model 1", "coterie encoding 1", "coterie rows 1", "coterie receipt 1", "coterie backup 1", "coterie certificate 1", // names of formats, with their version
	"coterie privacy ledger, version 1",
	"go mod tidy",               // a decision speaks of it
	"curl --cert identity.pem",  // a part of a command
	"coterie run --output json", // a form of output
}

// placeholder stands for something of the reader's own: such a command shows a form.
var placeholder = regexp.MustCompile(`^-*\[|…|\.\.\.|^[A-Z][A-Z_]*$|=[A-Z][A-Z_]*$`)

// mentioned looks at a piece of code in running text: whether it is a whole command, meant
// to be typed, and what is wrong with it if it is not one that the program has.
func mentioned(text string) (typed bool, err error) {
	words := strings.Fields(text)
	if len(words) == 0 || slices.Contains(notCommands, text) || !program.MatchString(text) {
		return false, nil
	}
	for strings.Contains(words[0], "=") || words[0] == "sudo" || words[0] == "$" {
		words = words[1:]
	}
	switch words[0] {
	case "coterie":
		return mentionedCommand(words[1:])
	case "go":
		err := mentionedTests(words[1:])
		return err == nil && len(words) > 2, err
	}
	form := slices.ContainsFunc(words, placeholder.MatchString)
	return len(words) > 1 && !form, nil
}

// mentionedCommand finds a command and its flags among those of the program.
func mentionedCommand(words []string) (typed bool, err error) {
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	root := a.newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(words)
	if err != nil {
		return false, err
	}
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return false, fmt.Errorf("there is no command %s", rest[0])
	}
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	typed = len(rest) > 0
	for i, word := range rest {
		if placeholder.MatchString(word) {
			typed = false
		}
		if word == "-" || !strings.HasPrefix(word, "-") {
			continue
		}
		name, _, valued := strings.Cut(strings.TrimLeft(word, "-"), "=")
		flag := flagOf(c, name)
		if flag == nil {
			return false, fmt.Errorf("%s has no flag %s", c.CommandPath(), word)
		}
		if !valued && flag.NoOptDefVal == "" && i+1 == len(rest) {
			typed = false // it names the flag
		}
	}
	return typed, nil
}

func flagOf(c *cobra.Command, name string) *pflag.Flag {
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.InheritedFlags(), c.PersistentFlags()} {
		if f := flags.Lookup(name); f != nil {
			return f
		}
		if len(name) == 1 {
			if f := flags.ShorthandLookup(name); f != nil {
				return f
			}
		}
	}
	return nil
}

// mentionedTests: the tests or benchmarks that a go test line names are there.
func mentionedTests(words []string) error {
	if len(words) == 0 || words[0] != "test" {
		return nil
	}
	var folders []string
	patterns := map[string]string{}
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "./"):
			folders = append(folders, filepath.Join(tier.Root(), strings.TrimSuffix(word, "/...")))
		case (word == "-run" || word == "-bench" || word == "-fuzz") && i+1 < len(words):
			patterns[word] = strings.Trim(words[i+1], "'")
		}
	}
	if len(folders) == 0 {
		return fmt.Errorf("it names no package")
	}
	for flag, kind := range map[string]string{"-run": "Test", "-bench": "Benchmark", "-fuzz": "Fuzz"} {
		pattern := strings.Split(patterns[flag], "/")[0]
		if pattern == "" || pattern == "XXX" || pattern == "^$" {
			continue
		}
		wanted, err := regexp.Compile(pattern)
		if err != nil {
			return err
		}
		found := false
		for _, folder := range folders {
			files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				for _, m := range regexp.MustCompile(`(?m)^func (`+kind+`\w*)\(`).FindAllSubmatch(text, -1) {
					found = found || wanted.Match(m[1])
				}
			}
		}
		if !found {
			return fmt.Errorf("no %s of these packages is matched by %s", strings.ToLower(kind), pattern)
		}
	}
	return nil
}

// TestMentioned: what a page names must exist, and what is meant to be typed is known.
func TestMentioned(t *testing.T) {
	for text, want := range map[string]struct {
		typed bool
		fault string
	}{
		"coterie run":                              {},
		"coterie run --schema":                     {typed: true},
		"coterie run FILE --seed 7":                {},
		"coterie account metric --distance 0.7":    {typed: true},
		"coterie account metric --distance":        {},
		"coterie account metrics --distance":       {fault: "metrics"},
		"coterie runs":                             {fault: "no command runs"},
		"coterie run x.yaml --sed 7":               {fault: "no flag --sed"},
		"coterie model 1":                          {},
		"coterie.run":                              {},
		"pip install ./python":                     {typed: true},
		"curl --cert FILE":                         {},
		"go test ./ledger -run XXX -bench Release": {typed: true},
		"go test ./ledger -bench Releasing":        {fault: "matched by Releasing"},
		"go test ./nowhere -run TestX":             {fault: "matched by TestX"},
		"data.kind":                                {},
	} {
		typed, err := mentioned(text)
		if typed != want.typed || (err == nil) != (want.fault == "") || err != nil && !strings.Contains(err.Error(), want.fault) {
			t.Errorf("%s: typed %v, %v; want %v, %q", text, typed, err, want.typed, want.fault)
		}
	}
}
