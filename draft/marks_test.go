package draft

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

var rewrite = flag.Bool("rewrite", false, "write the golden run file anew")

func runFile(t *testing.T, d *Draft) string {
	t.Helper()
	for _, f := range d.Files {
		if f.Name == "run.yaml" {
			return f.Text
		}
	}
	t.Fatal("there is no run.yaml")
	return ""
}

// valueLine is a line with a value, as a run file has them.
var valueLine = regexp.MustCompile(`^( *)(- )?([a-z_]+):(?: +([^#\s].*?))?(?: +(#.*))?$`)

// line is a value's path, and whether it is marked.
type line struct {
	path, value string
	marked      bool
}

// linesOf reads a run file without the writer's help: paths from the indentation, columns
// of lists by their name.
func linesOf(text string) []line {
	var out []line
	var stack []struct {
		depth int
		key   string
	}
	for _, l := range strings.Split(text, "\n") {
		m := valueLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		depth, key := len(m[1])+len(m[2]), m[3]
		for len(stack) > 0 && stack[len(stack)-1].depth >= depth {
			stack = stack[:len(stack)-1]
		}
		if m[2] != "" { // a list's element is known by its name
			for len(stack) > 0 && stack[len(stack)-1].depth >= len(m[1]) {
				stack = stack[:len(stack)-1]
			}
			stack = append(stack, struct {
				depth int
				key   string
			}{len(m[1]), m[4]})
		}
		var keys []string
		for _, s := range stack {
			keys = append(keys, s.key)
		}
		out = append(out, line{strings.Join(append(keys, key), "."), m[4], strings.Contains(m[5], "not public: replace or pay")})
		if m[4] == "" {
			stack = append(stack, struct {
				depth int
				key   string
			}{depth, key})
		}
	}
	return out
}

// checkMarks: what is marked is listed and the other way round, and everything that can
// only come from the data is marked, whatever the writer thinks.
func checkMarks(t *testing.T, d *Draft) {
	t.Helper()
	text := runFile(t, d)
	run, err := config.Resolve([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	var marked []string
	for _, l := range linesOf(text) {
		if l.marked {
			marked = append(marked, l.path)
		}
		last := l.path[strings.LastIndexByte(l.path, '.')+1:]
		fromData := slices.Contains([]string{"range", "values", "missing", "classes", "target_range", "target_missing", "batch", "public_size", "height", "width", "channels"}, last) ||
			last == "delta" && l.value != "1.0e-5"
		if strings.HasPrefix(l.path, "data.sensitive.") && l.value == `["no", "yes"]` { // whatever the table has
			fromData = false
		}
		if fromData != l.marked {
			t.Errorf("%s: %s is marked: %v, want %v", l.path, l.value, l.marked, fromData)
		}
	}
	slices.Sort(marked)
	for name, list := range map[string][]string{"the file's list": run.Data.NotPublic, "the draft's": d.NotPublic} {
		list = slices.Sorted(slices.Values(list))
		if !slices.Equal(list, marked) {
			t.Errorf("marked are %v; %s has %v", marked, name, list)
		}
	}
}

func TestWhatIsTakenFromDataIsMarked(t *testing.T) {
	dir := write(t, map[string]string{"rows.csv": clinics(150, 90, 60)})
	for target, want := range map[string]string{"outcome": "data.classes", "stage": "data.classes", "stay": "data.target_range", "bmi": "data.target_missing", "smoker": "data.features.outcome.values"} {
		d := drafted(t, Request{Path: filepath.Join(dir, "rows.csv"), Client: "site", Target: target, Out: filepath.Join(dir, "study")})
		checkMarks(t, d)
		for _, path := range []string{want, "privacy.public_size", "algorithm.local.batch", "data.sensitive.Geschlecht.values", "data.features.age.range"} {
			if !slices.Contains(d.NotPublic, path) {
				t.Errorf("%s: %s is not in %v", target, path, d.NotPublic)
			}
		}
	}
}

// TestDeltaOfLargeClients: 1e-5 is nobody's number; a smaller one tells how large the
// largest client is.
func TestDeltaOfLargeClients(t *testing.T) {
	var b strings.Builder
	b.WriteString("site,x,y\n")
	for i := range 140_000 {
		fmt.Fprintf(&b, "a,%d,%d\n", i%97, i%2)
	}
	dir := write(t, map[string]string{"rows.csv": b.String()})
	d := drafted(t, Request{Path: filepath.Join(dir, "rows.csv"), Client: "site", Target: "y", Out: dir})
	checkMarks(t, d)
	if !slices.Contains(d.NotPublic, "privacy.delta") || !strings.Contains(runFile(t, d), "  delta: 1.0e-6  # not public") {
		t.Errorf("%v\n%s", d.NotPublic, runFile(t, d))
	}
}

func TestPicturesAreMarked(t *testing.T) {
	picture := func(m image.Image) string {
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	grey, large := picture(image.NewGray(image.Rect(0, 0, 12, 10))), image.NewNRGBA(image.Rect(0, 0, 400, 100))
	large.Set(1, 1, color.White)
	for name, c := range map[string]struct{ picture, want string }{"grey": {grey, "10 12 1"}, "large": {picture(large), "8 32 3"}} {
		dir := write(t, map[string]string{
			"in/north/cat/1.png": c.picture, "in/north/dog/1.PNG": c.picture, "in/north/dog/notes.txt": "x", "in/south/cat/2.png": c.picture, "in/south/yes/2.png": c.picture,
		})
		d := drafted(t, Request{Path: filepath.Join(dir, "in"), Out: filepath.Join(dir, "study")})
		if got := fmt.Sprint(d.Kind, d.Rows, d.Clients, d.Target.Values); got != "pictures4 [{north 2} {south 2}] [cat dog yes]" {
			t.Error(name, got)
		}
		text := runFile(t, d)
		var h, w, channels int
		for _, l := range linesOf(text) {
			switch l.path {
			case "data.height":
				fmt.Sscan(l.value, &h)
			case "data.width":
				fmt.Sscan(l.value, &w)
			case "data.channels":
				fmt.Sscan(l.value, &channels)
			}
		}
		if got := fmt.Sprint(h, w, channels); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if want := []string{"data.height", "data.width", "data.channels", "data.classes", "algorithm.local.batch", "privacy.public_size"}; !slices.Equal(d.NotPublic, want) {
			t.Errorf("%s: %v", name, d.NotPublic)
		}
		for _, l := range linesOf(text) {
			if l.marked != slices.Contains(d.NotPublic, l.path) {
				t.Errorf("%s: %s is marked: %v", name, l.path, l.marked)
			}
		}
	}
}

// TestGoldenRunFile: go test ./draft -run Golden -rewrite writes it anew.
func TestGoldenRunFile(t *testing.T) {
	dir := write(t, map[string]string{"rows.csv": clinics(150, 90, 60)})
	d := drafted(t, Request{Path: filepath.Join(dir, "rows.csv"), Client: "site", Target: "outcome", Out: filepath.Join(dir, "study")})
	for _, f := range d.Files {
		golden := filepath.Join("testdata", f.Name)
		if *rewrite {
			if err := os.WriteFile(golden, []byte(f.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if f.Text != string(want) {
			t.Errorf("%s is\n%s", f.Name, f.Text)
		}
	}
}

// TestOddTextsStayText: names and values with YAML's own signs come back as they were.
func TestOddTextsStayText(t *testing.T) {
	odd := []string{"no", "Yes", "1e5", "0x1", "a: b", "# c", "x #1", "[d", "{e}", "'f'", "\"g\"", "h\\i", "null", "~", "-", "- j", "ä ö", "&k", "*l", "!m", "%n", "@o", "`p", "a,b", "1.0", "true", " q"}
	var b strings.Builder
	b.WriteString("site,\"odd: #name\",x,y\n")
	for i := range 40 * len(odd) {
		fmt.Fprintf(&b, "\"s: %d\",\"%s\",%d,%d\n", i%3, strings.ReplaceAll(odd[i%len(odd)], `"`, `""`), i%30, i%7%2)
	}
	dir := write(t, map[string]string{"a #b.csv": b.String()})
	d := drafted(t, Request{Path: filepath.Join(dir, "a #b.csv"), Client: "site", Target: "y", Out: filepath.Join(dir, "study")})
	run, err := config.Resolve([]byte(runFile(t, d)), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, runFile(t, d))
	}
	f := run.Data.Features[0]
	var got []string
	for _, v := range f.Values {
		got = append(got, string(v))
	}
	for i := range odd {
		odd[i] = strings.TrimSpace(odd[i])
	}
	odd = slices.DeleteFunc(odd, func(s string) bool { return s == "null" }) // is a missing cell
	slices.Sort(odd)
	slices.Sort(got)
	if f.Name != "odd: #name" || !slices.Equal(got, odd) {
		t.Errorf("%q has %q, want %q", f.Name, got, odd)
	}
	if run.Data.Source.Path != "../a #b.csv" {
		t.Error(run.Data.Source.Path)
	}
	if got := participants(d.Clients); !slices.Equal(got, []string{"s--0", "s--1", "s--2"}) {
		t.Errorf("%q", got)
	}
	if got := participants([]Client{{Name: "a b"}, {Name: "a-b"}, {Name: "ß"}, {Name: "ü"}}); !slices.Equal(got, []string{"a-b", "a-b-2", "ss", "ue"}) {
		t.Errorf("%q", got)
	}
}
