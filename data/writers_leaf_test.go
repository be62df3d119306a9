package data

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// leafPicture is paper but for the given values at its start.
func leafPicture(values ...string) string {
	cells := slices.Repeat([]string{"1.0"}, 784)
	copy(cells, values)
	return "[" + strings.Join(cells, ", ") + "]"
}

func leafFile(users, samples, data string) string {
	return fmt.Sprintf(`{"users": %s, "num_samples": %s, "user_data": %s}`, users, samples, data)
}

// readLEAF reads one file.
func readLEAF(name string, r io.Reader) (*WriterImages, error) {
	l := newLEAF()
	if err := l.read(name, r); err != nil {
		return nil, err
	}
	return l.finish(name)
}

func TestReadLEAF(t *testing.T) {
	a := `{"x": [` + leafPicture("0.0", "0.5019607843137255") + `, ` + leafPicture("1", "0") + `], "y": [61, 0]}`
	b := `{"y": [10], "x": [` + leafPicture("0.25") + `]}`
	files := map[string]string{
		"LEAF's order": leafFile(`["f0_1", "f0_2"]`, `[2, 1]`, `{"f0_1": `+a+`, "f0_2": `+b+`}`),
		"another":      `{"user_data": {"f0_2": ` + b + `, "f0_1": ` + a + `}, "hierarchies": [null, {"a": [1]}], "num_samples": [2,1], "users": ["f0_1","f0_2"]}`,
	}
	for name, body := range files {
		w, err := readLEAF("l.json", strings.NewReader(body))
		if err != nil {
			t.Fatal(name, err)
		}
		first, second := w.Writers[0], w.Writers[1]
		if first.Name != "f0_1" || len(first.Index) != 2 || second.Name != "f0_2" || len(second.Index) != 1 || w.Classes != 62 {
			t.Fatalf("%s: %+v", name, w.Writers)
		}
		// Background 1 becomes 0, ink 0 becomes 255; 0.502 is level 128 of 255.
		at := func(i, pixel int) byte { return w.Images.Pixels[784*i+pixel] }
		if i := first.Index[0]; at(i, 0) != 255 || at(i, 1) != 127 || at(i, 2) != 0 || w.Images.Labels[i] != 61 {
			t.Errorf("%s: %v, label %d", name, w.Images.Pixels[784*i:784*i+3], w.Images.Labels[i])
		}
		if i := first.Index[1]; at(i, 0) != 0 || at(i, 1) != 255 || w.Images.Labels[i] != 0 {
			t.Errorf("%s: %v", name, w.Images.Pixels[784*i:784*i+3])
		}
		if i := second.Index[0]; at(i, 0) != 191 || w.Images.Labels[i] != 10 {
			t.Errorf("%s: %v", name, w.Images.Pixels[784*i:784*i+3])
		}
		// 0.25 is no multiple of 1/255, and the report says so.
		if len(w.Report.Notes) != 1 || !strings.HasPrefix(w.Report.Notes[0], "1 pixels") {
			t.Error(name, w.Report.Notes)
		}
	}
}

// LEAF's split by sample leaves users in user_data that have nothing.
func TestLEAFUsersWithoutPictures(t *testing.T) {
	one := `{"x": [` + leafPicture() + `], "y": [3]}`
	w, err := readLEAF("l.json", strings.NewReader(leafFile(`["a", "c"]`, `[1, 0]`,
		`{"b": {"x": [], "y": []}, "a": `+one+`, "c": {"x": [], "y": []}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Writers) != 1 || w.Report.Count("user without a picture") != 2 {
		t.Errorf("%+v %s", w.Writers, &w.Report)
	}
}

func TestReadLEAFRefuses(t *testing.T) {
	one := `{"x": [` + leafPicture() + `], "y": [3]}`
	with := func(x, y string) string {
		return leafFile(`["a"]`, `[1]`, `{"a": {"x": `+x+`, "y": `+y+`}}`)
	}
	good := leafFile(`["a"]`, `[1]`, `{"a": `+one+`}`)
	if _, err := readLEAF("l.json", strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, body, what string }{
		{"nothing", "", "EOF"},
		{"a list", "[]", "'[' where '{' must be"},
		{"no users", `{"num_samples": [1], "user_data": {"a": ` + one + `}}`, "must all be there"},
		{"another key", `{"user": []}`, `unknown key "user"`},
		{"users twice", `{"users": ["a"], "users": ["a"]}`, `"users" is there twice`},
		{"a null user", leafFile(`[null]`, `[1]`, `{"a": `+one+`}`), "users"},
		{"a number for a user", leafFile(`[1]`, `[1]`, `{"a": `+one+`}`), "users"},
		{"the same user twice", leafFile(`["a", "a"]`, `[1, 1]`, `{"a": `+one+`}`), `user "a" is there twice`},
		{"a user's data twice", leafFile(`["a"]`, `[1]`, `{"a": `+one+`, "a": `+one+`}`), `"a" is there twice`},
		{"a count less", leafFile(`["a"]`, `[]`, `{"a": `+one+`}`), "1 users and 0"},
		{"another count", leafFile(`["a"]`, `[2]`, `{"a": `+one+`}`), "num_samples says 2"},
		{"a null count", leafFile(`["a"]`, `[null]`, `{"a": `+one+`}`), "number of samples 0"},
		{"a user without data", leafFile(`["a", "b"]`, `[1, 1]`, `{"a": `+one+`}`), `"b" has no user_data`},
		{"data without a user", leafFile(`[]`, `[]`, `{"a": `+one+`}`), "not among users"},
		{"nobody", leafFile(`[]`, `[]`, `{}`), "no writer"},
		{"a label out of range", with("["+leafPicture()+"]", "[62]"), "label 0"},
		{"a negative label", with("["+leafPicture()+"]", "[-1]"), "label 0"},
		{"half a label", with("["+leafPicture()+"]", "[1.5]"), "label 0"},
		{"a null label", with("["+leafPicture()+"]", "[null]"), "label 0"},
		{"two labels", with("["+leafPicture()+"]", "[1, 2]"), "1 pictures in x and 2 labels"},
		{"x and z", leafFile(`["a"]`, `[1]`, `{"a": {"z": []}}`), `unknown key "z"`},
		{"a short picture", with("[[1.0, 1.0]]", "[1]"), "2 pixels"},
		{"a long picture", with("["+strings.Replace(leafPicture(), "[", "[0.0, ", 1)+"]", "[1]"), "785 pixels"},
		{"a bright pixel", with("["+leafPicture("1.0", "1.01")+"]", "[1]"), "picture 0: pixel 1 is"},
		{"a dark pixel", with("["+leafPicture("-0.1")+"]", "[1]"), "pixel 0 is"},
		{"bytes for shares", with("["+leafPicture("127")+"]", "[1]"), "0 to 1"},
		{"a null pixel", with("["+leafPicture("null")+"]", "[1]"), "pixel 0 is"},
		{"Python's NaN", with("["+leafPicture("NaN")+"]", "[1]"), "pixel 0 is"},
		{"text for a pixel", with("["+leafPicture(`"1,0"`)+"]", "[1]"), "pixel 0 is"},
		{"a list for a pixel", with("["+leafPicture("[1.0]")+"]", "[1]"), "pixel 0 is"},
		{"a number for a picture", with("[3]", "[1]"), "picture 0: '3' where '[' must be"},
		{"a cut file", good[:len(good)/2], "unexpected EOF"},
		{"a cut end", good[:len(good)-1], "EOF"},
		{"a comma more", strings.Replace(good, "[3]", "[3,]", 1), "label 1"},
		{"a comma less", strings.Replace(good, "1.0, 1.0", "1.0 1.0", 1), "a comma must be"},
		{"no colon", strings.Replace(good, ":", " ", 1), "':' must be"},
		{"a number without end", with("[["+strings.Repeat("1", 100), "[1]"), "more than 64"},
		{"an open string", `{"users`, "EOF"},
		{"a bad escape", `{"us\qers": 1}`, "the string"},
		{"open hierarchies", `{"hierarchies": [{"a": 1`, "EOF"},
		{"two objects", good + good, "after the end"},
	} {
		_, err := readLEAF("l.json", strings.NewReader(c.body))
		wantError(t, c.name, err, "l.json", c.what)
	}
	// A fault inside names the user.
	_, err := readLEAF("l.json", strings.NewReader(with("["+leafPicture("7")+"]", "[1]")))
	wantError(t, "a fault", err, `user "a"`, "byte")
}

func TestLoadLEAF(t *testing.T) {
	folder := t.TempDir()
	one := `{"x": [` + leafPicture() + `], "y": [3]}`
	put(t, folder, "all_data_0.json", []byte(leafFile(`["a"]`, `[1]`, `{"a": `+one+`}`)))
	second := put(t, folder, "all_data_1.json.gz", gz(t, []byte(leafFile(`["b"]`, `[1]`, `{"b": `+one+`}`))))
	put(t, folder, "README", []byte("no data"))
	w, err := LoadLEAF(folder)
	if err != nil || len(w.Writers) != 2 || w.Writers[1].Name != "b" || w.Images.Len() != 2 {
		t.Fatal(w, err)
	}
	if w, err = LoadLEAF(second); err != nil || len(w.Writers) != 1 {
		t.Fatal(w, err)
	}
	_, err = LoadLEAF(folder, second)
	wantError(t, "a file twice", err, `user "b" is there twice`)
	_, err = LoadLEAF(t.TempDir())
	wantError(t, "an empty folder", err, "no .json")
	_, err = LoadLEAF(folder + "/nothing.json")
	wantError(t, "a missing file", err, "nothing.json")
}

// Hierarchies are passed over whatever they are, and what follows is still read.
func TestLEAFHierarchies(t *testing.T) {
	one := `{"x": [` + leafPicture() + `], "y": [3]}`
	for _, h := range []string{"null", "3", `"a]}"`, "[]", "{}", `[[1, {"b": "\\\"]"}], null]`, " [ ] ", `{"a": {"b": [1, 2]}}`} {
		body := `{"hierarchies": ` + h + `, "users": ["a"], "num_samples": [1], "user_data": {"a": ` + one + `}}`
		if _, err := readLEAF("l.json", strings.NewReader(body)); err != nil {
			t.Errorf("%s: %v", h, err)
		}
	}
}

// leafOf200 is a file of 200 pictures of which a quarter is ink.
func leafOf200() string {
	cells := make([]string, 784)
	for i := range cells {
		if cells[i] = "1.0"; i%4 == 0 {
			cells[i] = strconv.FormatFloat(float64(i%255)/255, 'g', -1, 64)
		}
	}
	x := strings.Repeat(leafPicture(cells...)+", ", 199) + leafPicture(cells...)
	return leafFile(`["a"]`, `[200]`, `{"a": {"x": [`+x+`], "y": [`+strings.Repeat("1, ", 199)+`1]}}`)
}

// BenchmarkReadLEAF compares the scanner with encoding/json on the same bytes.
func BenchmarkReadLEAF(b *testing.B) {
	body := leafOf200()
	b.Run("scanner", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := readLEAF("l.json", strings.NewReader(body)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var file struct {
				Data map[string]struct {
					X [][]float64 `json:"x"`
					Y []int       `json:"y"`
				} `json:"user_data"`
			}
			if err := json.NewDecoder(strings.NewReader(body)).Decode(&file); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func FuzzReadLEAF(f *testing.F) {
	one := `{"x": [` + leafPicture("0.0") + `], "y": [3]}`
	f.Add(leafFile(`["a"]`, `[1]`, `{"a": `+one+`}`))
	f.Add(leafFile(`["a"]`, `[0]`, `{"a": {"x": [[]], "y": []}}`))
	f.Fuzz(func(t *testing.T, body string) {
		w, err := readLEAF("l.json", strings.NewReader(body))
		if err == nil && (len(w.Images.Pixels) != 784*w.Images.Len() || len(w.Writers) == 0) {
			t.Fatalf("%d pixels, %d pictures, %d writers", len(w.Images.Pixels), w.Images.Len(), len(w.Writers))
		}
	})
}

// TestFEMNISTAsRunData: LEAF's files in the folder femnist become clients, ink dark
// or light as the run file says.
func TestFEMNISTAsRunData(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "femnist"), 0o755); err != nil {
		t.Fatal(err)
	}
	one := `{"x": [` + leafPicture("0.0") + `], "y": [3]}`
	body := leafFile(`["a", "b"]`, `[1, 1]`, `{"a": `+one+`, "b": `+one+`}`)
	if err := os.WriteFile(filepath.Join(folder, "femnist", "all_data_0.json"), []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	for ink, want := range map[string]byte{"": 0, "dark": 0, "light": 255} {
		d := config.Data{Kind: "writers", Set: "femnist", Ink: ink, TrainShare: 0.5}
		f, err := NewFolder(folder).Load(d, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := f.Train[0]
		if len(f.Train) != 1 || len(f.Validation) != 1 || f.Classes != 62 || c.Images.Pixels[784*c.Index[0]] != want {
			t.Errorf("ink %q: %d and %d clients, first pixel %d", ink, len(f.Train), len(f.Validation), c.Images.Pixels[784*c.Index[0]])
		}
	}
	if _, err := NewFolder(t.TempDir()).Load(config.Data{Kind: "writers", Set: "femnist", TrainShare: 0.5}, 1); err == nil || !strings.Contains(err.Error(), "femnist") {
		t.Errorf("without the files: %v", err)
	}
}
