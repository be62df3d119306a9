package data

import (
	"errors"
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

// leaf gathers LEAF files.
type leaf struct {
	images  Images
	writers []Writer
	report  LoadReport
	rounded int             // pixels that are no multiple of 1/255
	seen    map[string]bool // users of all files
	// Of the current file:
	name string
	in   *jsonScanner
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

// read reads one file: {"users": […], "num_samples": […], "user_data": {user:
// {"x": [[784 values]], "y": […]}}}, its keys in any order, and perhaps
// "hierarchies", which is not needed.
func (l *leaf) read(name string, r io.Reader) error {
	l.name, l.in, l.user = name, newJSONScanner(r), ""
	if err := l.readObject(); err != nil {
		where := fmt.Sprintf("%s, byte %d", name, l.in.offset)
		if l.user != "" {
			where += fmt.Sprintf(", user %q", l.user)
		}
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func (l *leaf) readObject() error {
	var users []string
	var samples []int
	var found map[string][]int
	err := l.in.object(func(key string) (err error) {
		switch key {
		case "users":
			users, err = l.users()
		case "num_samples":
			samples, err = l.integers("number of samples", maxIDX)
		case "user_data":
			found, err = l.userData()
		case "hierarchies":
			err = l.in.skip()
		default:
			err = fmt.Errorf("unknown key %q; known: users, num_samples, user_data, hierarchies", key)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := l.in.end(); err != nil {
		return err
	}
	if users == nil || samples == nil || found == nil {
		return errors.New("users, num_samples and user_data must all be there")
	}
	return l.match(users, samples, found)
}

// match makes writers of the file's users, in the order of its list.
func (l *leaf) match(users []string, samples []int, found map[string][]int) error {
	if len(users) != len(samples) {
		return fmt.Errorf("%d users and %d num_samples", len(users), len(samples))
	}
	for i, u := range users {
		index, ok := found[u]
		switch {
		case l.seen[u]:
			return fmt.Errorf("user %q is there twice", u)
		case !ok:
			return fmt.Errorf("user %q has no user_data", u)
		case len(index) != samples[i]:
			return fmt.Errorf("user %q has %d pictures, num_samples says %d", u, len(index), samples[i])
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
			return fmt.Errorf("user %q has %d pictures, but is not among users", u, len(index))
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
	err := l.in.object(func(user string) error {
		l.user = user
		from, labels, pictures := l.images.Len(), []int(nil), 0
		err := l.in.object(func(key string) (err error) {
			switch key {
			case "x":
				err = l.in.items('[', ']', func() error {
					if err := l.picture(); err != nil {
						return fmt.Errorf("picture %d: %w", pictures, err)
					}
					pictures++
					return nil
				})
			case "y":
				labels, err = l.integers("label", unipenClasses-1)
			default:
				err = fmt.Errorf("unknown key %q; known: x, y", key)
			}
			return err
		})
		if err != nil {
			return err
		}
		if pictures != len(labels) {
			return fmt.Errorf("%d pictures in x and %d labels in y", pictures, len(labels))
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

// picture appends one picture. LEAF's background is 1 and its ink 0; ours are 0
// and 255.
func (l *leaf) picture() error {
	count := 0
	err := l.in.numbers(func(item []byte) error {
		v, ok := 1.0, true
		if string(item) != "1.0" { // most of a picture is paper: spare it the parsing
			v, ok = parseDecimal(string(item))
		}
		if !ok || v < 0 || v > 1 {
			return fmt.Errorf("pixel %d is %s; allowed: a number from 0 to 1", count, shorten(string(item)))
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

// integers reads a list of whole numbers from 0 to high.
func (l *leaf) integers(what string, high int) ([]int, error) {
	out := []int{}
	err := l.in.numbers(func(item []byte) error {
		v, err := strconv.Atoi(string(item))
		if err != nil || v < 0 || v > high {
			return fmt.Errorf("%s %d is %s; allowed: 0 to %d", what, len(out), shorten(string(item)), high)
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

// users reads a list of names.
func (l *leaf) users() ([]string, error) {
	out := []string{}
	err := l.in.items('[', ']', func() error {
		name, err := l.in.text()
		if err != nil {
			return fmt.Errorf("users: %w", err)
		}
		out = append(out, name)
		return nil
	})
	return out, err
}
