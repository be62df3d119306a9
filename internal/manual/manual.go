// Package manual writes docs/run-file.md from the tags and registries that files are loaded by.
package manual

//go:generate sh -c "go run ../../cmd/coterie run --schema --markdown > ../../docs/run-file.md"

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sweep"
)

// mostColumns is how wide running text is written.
const mostColumns = 108

// page is a reference that grows.
type page struct {
	strings.Builder
	run      []config.Key // of the run file
	defaults resolved
	silos    []string // kinds of data whose clients hold out examples of their own
	others   []string // the other kinds
}

// RunFile is docs/run-file.md: every key of a run file, and of the files beside it.
func RunFile() ([]byte, error) {
	p := &page{run: config.Keys(config.Run{})}
	var err error
	if p.defaults, err = resolve(p.run); err != nil {
		return nil, err
	}
	for _, k := range data.Kinds() {
		if k.OwnTest {
			p.silos = append(p.silos, k.Name)
		} else {
			p.others = append(p.others, k.Name)
		}
	}
	files, err := filesBeside()
	if err != nil {
		return nil, err
	}
	p.WriteString(head)
	p.index(files)
	p.WriteString(howToRead)
	p.blocks()
	for _, f := range files {
		p.file(f)
	}
	return []byte(p.String()), nil
}

// index lists what the page has, with links.
func (p *page) index(files []fileBeside) {
	p.item("[Beside the blocks](#beside-the-blocks): " + names(beside(p.run), ""))
	for _, k := range p.run {
		if k.Block && !strings.Contains(k.Path, ".") {
			p.item(fmt.Sprintf("[%s](#%s), %s: %s", k.Path, k.Path, k.Meaning, names(p.run, k.Path+".")))
		}
	}
	for _, f := range files {
		p.item(fmt.Sprintf("[%s](#%s): %s", f.title, strings.ReplaceAll(strings.ToLower(f.title), " ", "-"), names(f.keys, "")))
	}
	p.line("")
}

// beside are the keys outside all blocks that hold none themselves.
func beside(keys []config.Key) (out []config.Key) {
	for _, k := range keys {
		if !k.Block && !strings.Contains(k.Path, ".") {
			out = append(out, k)
		}
	}
	return out
}

// names are those of a block's own keys.
func names(keys []config.Key, block string) string {
	var out []string
	for _, k := range keys {
		if name, ok := strings.CutPrefix(k.Path, block); ok && !strings.ContainsAny(name, ".[") {
			out = append(out, "`"+name+"`")
		}
	}
	return strings.Join(out, " ")
}

// blocks are the run file's, each with an example and what its kinds are.
func (p *page) blocks() {
	p.line("## Beside the blocks\n")
	for _, k := range beside(p.run) {
		p.key(k, p.defaultOf(k))
	}
	p.line("")
	for _, k := range p.run {
		block, _, nested := strings.Cut(k.Path, ".")
		if !nested && k.Block {
			p.line("## %s\n", block)
			p.line("%s.\n", sentence(k.Meaning))
			p.example(examples[block])
			p.kinds(block)
			for _, inside := range p.run {
				if strings.HasPrefix(inside.Path, block+".") {
					p.key(inside, p.defaultOf(inside))
				}
			}
			p.line("")
		}
	}
}

func (p *page) example(text string) {
	p.line("```yaml\n%s```\n", text)
}

// kinds is a table of a block's choices: what each is, and which keys only some read.
func (p *page) kinds(block string) {
	switch block {
	case "data":
		p.line("| `data.kind` | what it is | silos | keys that it reads beside `kind` |")
		p.line("| --- | --- | --- | --- |")
		for _, k := range data.Kinds() {
			silos := ""
			if k.OwnTest {
				silos = "yes"
			}
			p.line("| `%s` | %s | %s | %s |", k.Name, k.Words(config.Default(k.Name, "", "paper").Data), silos, code(k.Keys))
		}
	case "algorithm":
		p.choices("algorithm.kind", fl.MethodWords)
	case "privacy":
		p.choices("privacy.protects", fl.ProtectionWords)
	default:
		return
	}
	p.line("")
}

// choices is a table of a registry.
func (p *page) choices(path string, words func(string) string) {
	p.line("| `%s` | what it is |", path)
	p.line("| --- | --- |")
	for _, name := range keyAt(p.run, path).Values {
		p.line("| `%s` | %s |", name, words(name))
	}
}

// key writes an item: what the key means, what it takes, its default, who reads it.
func (p *page) key(k config.Key, byDefault string) {
	facts := sentence(takes(k)) + "."
	if byDefault != "" {
		facts += " " + byDefault + "."
	}
	if only := p.only(k); only != "" {
		facts += " " + only + "."
	}
	p.item(fmt.Sprintf("**`%s`**: %s.", k.Path, k.Meaning), facts)
}

// item writes an item of a list, each paragraph on lines of its own.
func (p *page) item(paragraphs ...string) {
	for i, text := range paragraphs {
		paragraphs[i] = wrapped(text, mostColumns)
	}
	p.line("- %s", strings.Join(paragraphs, "\\\n  "))
}

// takes is a key's type, with its range or its values.
func takes(k config.Key) string {
	switch {
	case len(k.Values) > 0:
		return "one of " + code(k.Values)
	case k.Allowed != "":
		return k.Type + ", " + longNumber.ReplaceAllStringFunc(k.Allowed, grouped)
	}
	return k.Type
}

// only says with which values of other keys a key is read; empty: with all.
func (p *page) only(k config.Key) string {
	var parts []string
	for _, c := range inOrder(k.Only) {
		if who := p.who(c); !slices.Contains(parts, who) {
			parts = append(parts, who)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := "Read with " + strings.Join(parts, ", with ")
	if k.Also != "" {
		text += fmt.Sprintf("; and by `%s` always", k.Also)
	}
	return text
}

// inOrder are conditions with those on deciders first.
func inOrder(all []config.Condition) []config.Condition {
	place := func(c config.Condition) int {
		if i := slices.Index(deciders[:], c.Path); i >= 0 {
			return i
		}
		return len(deciders)
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b config.Condition) int { return place(a) - place(b) })
}

// who are a condition's values, by those that are missing if these are few.
func (p *page) who(c config.Condition) string {
	if !slices.Contains(deciders[:], c.Path) {
		return fmt.Sprintf("`%s` %s", c.Path, anyOf(c.Values))
	}
	switch {
	case c.Path == "data.kind" && slices.Equal(c.Values, p.silos):
		return "data of silos"
	case c.Path == "data.kind" && slices.Equal(c.Values, p.others):
		return "data other than silos"
	}
	others := slices.DeleteFunc(slices.Clone(keyAt(p.run, c.Path).Values), func(v string) bool { return slices.Contains(c.Values, v) })
	if len(others) > 0 && len(others) <= 2 && len(others) < len(c.Values) {
		return fmt.Sprintf("`%s` other than %s", c.Path, anyOf(others))
	}
	return fmt.Sprintf("`%s` %s", c.Path, anyOf(c.Values))
}

// file writes the keys of a file beside the run file.
func (p *page) file(f fileBeside) {
	p.line("## %s\n", f.title)
	p.line("%s\n", wrapped(f.words, mostColumns))
	p.example(f.example)
	for _, k := range f.keys {
		byDefault := ""
		if k.Field != nil && !k.Block {
			byDefault = plainDefault(k, shown(f.defaults.FieldByIndex(k.Field)))
			if slices.Contains(f.must, k.Path) {
				byDefault = "Must be given"
			}
		}
		p.key(k, byDefault)
	}
	p.line("")
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// sentence begins with a capital letter.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func code(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "`" + w + "`"
	}
	return strings.Join(out, ", ")
}

// longNumber is one whose digits are easier to read in groups.
var longNumber = regexp.MustCompile(`\d{5,}`)

// grouped has a comma before every third digit from the end.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// anyOf lists words with an or before the last one.
func anyOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// wrapped breaks text into lines of at most so many characters, as an item of a list has
// them.
func wrapped(text string, most int) string {
	var out strings.Builder
	length := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case length+1+n > most:
			out.WriteString("\n  ")
			length = 0
		default:
			out.WriteByte(' ')
			length++
		}
		out.WriteString(word)
		length += n
	}
	return out.String()
}

// fileBeside is a file beside the run file.
type fileBeside struct {
	title, words, example string
	keys                  []config.Key
	defaults              reflect.Value
	must                  []string // keys without a default
}

// filesBeside are those that the same loader reads. Their defaults are what the shortest
// file that is accepted resolves to.
func filesBeside() ([]fileBeside, error) {
	serve, err := plan.LoadServeFile([]byte("{run: run.yaml, participants: [north]}"), "")
	if err != nil {
		return nil, fmt.Errorf("serve file: %w", err)
	}
	join, err := plan.LoadJoinFile(nil, "")
	if err != nil {
		return nil, fmt.Errorf("join file: %w", err)
	}
	policy, err := plan.LoadPolicy([]byte("ceilings: [{unit: example, relation: add-remove, claim: proved, epsilon: 1, delta: 1e-5}]"))
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	all := []fileBeside{
		{title: "The serve file", words: serveWords, example: serveExample, defaults: reflect.ValueOf(serve), must: []string{"run", "participants"}},
		{title: "The join file", words: joinWords, example: joinExample, defaults: reflect.ValueOf(join)},
		{title: "The policy file", words: policyWords, example: policyExample, defaults: reflect.ValueOf(policy), must: []string{"ceilings"}},
		{title: "The sweep file", words: sweepWords, example: sweepExample, defaults: reflect.ValueOf(sweep.File{Seeds: 1}), must: []string{"run", "grid"}},
	}
	for i := range all {
		all[i].keys = config.Keys(all[i].defaults.Interface())
	}
	return all, nil
}
