package data

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// LoadLEAF reads FEMNIST as LEAF writes it, from JSON files (plain or gzip) or
// folders of such files, in the order of their names. A user may be in one of
// them only.
func LoadLEAF(paths ...string) (*WriterImages, error) {
	var files []string
	for _, p := range paths {
		inside, err := leafFiles(p)
		if err != nil {
			return nil, err
		}
		files = append(files, inside...)
	}
	l := newLEAF()
	for _, path := range files {
		r, done, err := openData(path)
		if err != nil {
			return nil, err
		}
		err = l.read(path, r)
		done()
		if err != nil {
			return nil, err
		}
	}
	return l.finish(fmt.Sprintf("%d LEAF files", len(files)))
}

// leafFiles are the JSON files of a folder, or the path itself.
func leafFiles(path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}, nil // what is missing is told when it is opened
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("leaf: %w", err)
	}
	var files []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".json.gz") {
			files = append(files, filepath.Join(path, name))
		}
	}
	if files == nil {
		return nil, fmt.Errorf("leaf: %s holds no .json and no .json.gz file", path)
	}
	return files, nil
}

// ReadLEAF reads one of LEAF's FEMNIST files. The name is for errors.
func ReadLEAF(name string, r io.Reader) (*WriterImages, error) {
	l := newLEAF()
	if err := l.read(name, r); err != nil {
		return nil, err
	}
	return l.finish(name)
}

// leaf gathers LEAF files. Only one picture at a time is held as text.
type leaf struct {
	images  Images
	writers []Writer
	report  LoadReport
	rounded int             // pixels that are no multiple of 1/255
	seen    map[string]bool // users of all files
	// Of the current file:
	name string
	dec  *json.Decoder
	user string
}

func newLEAF() *leaf {
	return &leaf{images: Images{Height: unipenSide, Width: unipenSide}, seen: map[string]bool{}}
}

// finish checks the whole.
func (l *leaf) finish(source string) (*WriterImages, error) {
	w, err := NewWriterImages(&l.images, unipenClasses, l.writers)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	l.report.Source = source
	l.report.Rows, l.report.Kept = w.Images.Len(), w.Images.Len()
	if l.rounded > 0 {
		l.report.Notes = append(l.report.Notes, fmt.Sprintf("%d pixels were no multiple of 1/255 and were rounded to the nearest", l.rounded))
	}
	w.Report = l.report
	return w, nil
}

func (l *leaf) errorf(format string, args ...any) error {
	where := fmt.Sprintf("%s, byte %d", l.name, l.dec.InputOffset())
	if l.user != "" {
		where += fmt.Sprintf(", user %q", l.user)
	}
	return fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...))
}

// read reads one file: {"users": […], "num_samples": […], "user_data": {user:
// {"x": [[784 values]], "y": […]}}}, its keys in any order, and perhaps
// "hierarchies", which is not needed.
func (l *leaf) read(name string, r io.Reader) error {
	l.name, l.dec, l.user = name, json.NewDecoder(r), ""
	var users []string
	var samples []int
	var found map[string][]int
	err := l.object([]string{"users", "num_samples", "user_data", "hierarchies"}, func(key string) error {
		var err error
		switch key {
		case "users":
			users, err = l.strings()
		case "num_samples":
			samples, err = l.integers("number of samples", maxIDX)
		case "user_data":
			found, err = l.userData()
		default:
			if err = l.dec.Decode(new(json.RawMessage)); err != nil {
				err = l.errorf("%s: %w", key, err)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := l.dec.Token(); err != io.EOF {
		return l.errorf("there is more after the end of the object")
	}
	if users == nil || samples == nil || found == nil {
		return l.errorf("users, num_samples and user_data must all be there")
	}
	return l.match(users, samples, found)
}

// match makes writers of the file's users, in the order of its list.
func (l *leaf) match(users []string, samples []int, found map[string][]int) error {
	if len(users) != len(samples) {
		return l.errorf("%d users and %d num_samples", len(users), len(samples))
	}
	for i, u := range users {
		index, ok := found[u]
		switch {
		case l.seen[u]:
			return l.errorf("user %q is there twice", u)
		case !ok:
			return l.errorf("user %q has no user_data", u)
		case len(index) != samples[i]:
			return l.errorf("user %q has %d pictures, num_samples says %d", u, len(index), samples[i])
		}
		l.seen[u] = true
		delete(found, u)
		if len(index) == 0 {
			l.report.leaveOut("user without a picture", fmt.Sprintf("%s: user %q", l.name, u))
			continue
		}
		l.writers = append(l.writers, Writer{Name: u, Index: index})
	}
	// LEAF's split by sample leaves users of one picture in user_data, emptied.
	var rest []string
	for u, index := range found {
		if len(index) > 0 {
			return l.errorf("user %q has %d pictures, but is not among users", u, len(index))
		}
		rest = append(rest, u)
	}
	slices.Sort(rest)
	for _, u := range rest {
		l.report.leaveOut("user without a picture", fmt.Sprintf("%s: user %q", l.name, u))
	}
	return nil
}

// userData reads the pictures of all users.
func (l *leaf) userData() (map[string][]int, error) {
	found := map[string][]int{}
	err := l.object(nil, func(user string) error {
		l.user = user
		from, labels := l.images.Len(), []int(nil)
		pictures := 0
		err := l.object([]string{"x", "y"}, func(key string) (err error) {
			if key == "x" {
				pictures, err = l.pictures()
			} else {
				labels, err = l.integers("label", unipenClasses-1)
			}
			return err
		})
		if err != nil {
			return err
		}
		if pictures != len(labels) {
			return l.errorf("%d pictures in x and %d labels in y", pictures, len(labels))
		}
		l.images.Labels = append(l.images.Labels, labels...)
		index := make([]int, pictures)
		for i := range index {
			index[i] = from + i
		}
		found[user] = index
		l.user = ""
		return nil
	})
	return found, err
}

// pictures reads x.
func (l *leaf) pictures() (int, error) {
	if err := l.delimiter('['); err != nil {
		return 0, err
	}
	n := 0
	var raw json.RawMessage
	for ; l.dec.More(); n++ {
		if err := l.dec.Decode(&raw); err != nil {
			return 0, l.errorf("picture %d: %w", n, err)
		}
		if err := l.picture(raw); err != nil {
			return 0, l.errorf("picture %d: %w", n, err)
		}
	}
	return n, l.delimiter(']')
}

// picture appends one picture. LEAF's background is 1 and its ink 0; ours are 0
// and 255.
func (l *leaf) picture(raw []byte) error {
	count := 0
	err := eachItem(raw, func(item []byte) error {
		var v float64
		switch string(item) {
		case "1.0": // most of a picture is paper: spare it the parsing
			v = 1
		default:
			var ok bool
			if v, ok = parseDecimal(string(item)); !ok || v < 0 || v > 1 {
				return fmt.Errorf("pixel %d is %s; allowed: a number from 0 to 1", count, shorten(string(item)))
			}
		}
		level := math.Round(255 * v)
		if math.Abs(255*v-level) > 1e-3 { // LEAF's own values differ by rounding only
			l.rounded++
		}
		l.images.Pixels = append(l.images.Pixels, 255-byte(level))
		count++
		return nil
	})
	if err == nil && count != unipenSide*unipenSide {
		err = fmt.Errorf("%d pixels, must be %d", count, unipenSide*unipenSide)
	}
	return err
}

// integers reads an array of whole numbers from 0 to high.
func (l *leaf) integers(what string, high int) ([]int, error) {
	var raw json.RawMessage
	if err := l.dec.Decode(&raw); err != nil {
		return nil, l.errorf("a list of %ss: %w", what, err)
	}
	out := []int{}
	err := eachItem(raw, func(item []byte) error {
		v, err := strconv.Atoi(string(item))
		if err != nil || v < 0 || v > high {
			return fmt.Errorf("%s %d is %s; allowed: 0 to %d", what, len(out), shorten(string(item)), high)
		}
		out = append(out, v)
		return nil
	})
	if err != nil {
		return nil, l.errorf("%w", err)
	}
	return out, nil
}

// strings reads an array of strings.
func (l *leaf) strings() ([]string, error) {
	var list []*string // null must not pass as ""
	if err := l.dec.Decode(&list); err != nil {
		return nil, l.errorf("users: %w", err)
	}
	out := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return nil, l.errorf("users: number %d is null", i)
		}
		out[i] = *s
	}
	return out, nil
}

// eachItem walks the items of a JSON array of numbers. What is no number arrives
// as a piece that no number parser takes.
func eachItem(raw []byte, visit func(item []byte) error) error {
	if len(raw) < 2 || raw[0] != '[' {
		return fmt.Errorf("%s is not a list of numbers", shorten(string(raw)))
	}
	raw = bytes.TrimSpace(raw[1 : len(raw)-1])
	for len(raw) > 0 {
		item, rest, more := bytes.Cut(raw, []byte(","))
		if err := visit(bytes.TrimSpace(item)); err != nil {
			return err
		}
		if raw = rest; !more {
			break
		}
	}
	return nil
}

// object walks an object; keys must be among the allowed ones (nil: any) and
// come once.
func (l *leaf) object(allowed []string, visit func(key string) error) error {
	if err := l.delimiter('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for l.dec.More() {
		token, err := l.dec.Token()
		if err != nil {
			return l.errorf("%w", err)
		}
		key, ok := token.(string)
		switch {
		case !ok:
			return l.errorf("%v where a key must be", token)
		case seen[key]:
			return l.errorf("key %q is there twice", key)
		case allowed != nil && !slices.Contains(allowed, key):
			return l.errorf("unknown key %q; known: %v", key, allowed)
		}
		seen[key] = true
		if err := visit(key); err != nil {
			return err
		}
	}
	return l.delimiter('}')
}

// delimiter reads one bracket.
func (l *leaf) delimiter(want json.Delim) error {
	token, err := l.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return l.errorf("%w where %v must be", err, want)
	}
	if token != want {
		return l.errorf("%v where %v must be", token, want)
	}
	return nil
}
