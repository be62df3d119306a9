package source

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pictureClient is one client's pictures where they lie: files in class folders, or one
// archive.
type pictureClient struct {
	name, path string
	files      []pictureFile
	archive    string // an npz file, or an idx file of pictures
	labels     string // the idx file of their labels
}

type pictureFile struct {
	path  string
	class int
}

// idxName is an idx file's: what it is of, pictures or labels, and whether it is
// compressed, as MNIST's four files are named.
var idxName = regexp.MustCompile(`^(.*?)[-._]?(images|labels)([-._])idx([134])-ubyte(\.gz)?$`)

// findAll finds the clients of a folder or of a pattern, in the order of their names: in
// it a folder a client, an idx pair, or an npz file.
func (r *pictureReader) findAll(path string) []pictureClient {
	places, ok := r.placesOf(path)
	if !ok {
		return nil
	}
	var clients []pictureClient
	for _, place := range places {
		name, files := clientName(filepath.Base(place)), false
		if info, err := os.Stat(place); err == nil && info.IsDir() {
			name = filepath.Base(place)
		} else {
			files = true
		}
		switch {
		case files && isLabels(place):
			if _, ok := partner(place); !ok {
				r.faults.add(place, fmt.Errorf("has labels, but the file of their pictures is not beside it"))
			}
			continue // they come with their pictures
		case name == "":
			r.faults.add(place, fmt.Errorf("names no client; allowed here: a folder, NAME.npz, NAME-images-idx3-ubyte with NAME-labels-idx1-ubyte (or both .gz)"))
			continue
		}
		if at := slices.IndexFunc(clients, func(c pictureClient) bool { return c.name == name }); at >= 0 {
			r.faults.add(place, fmt.Errorf("is a second client %q beside %s", name, clients[at].path))
			continue
		}
		clients = append(clients, r.find(place, name))
	}
	if len(clients) == 0 && len(r.faults) == 0 {
		r.faults.add(path, fmt.Errorf("has no client: a folder, an idx pair or an npz file is expected for each"))
	}
	slices.SortFunc(clients, func(a, b pictureClient) int { return cmp.Compare(a.name, b.name) })
	return clients
}

// placesOf are what a folder holds, or what fits a pattern; hidden files are nobody's.
func (r *pictureReader) placesOf(path string) (places []string, ok bool) {
	if info, err := os.Stat(path); err != nil && strings.ContainsAny(path, "*?[") {
		places, err = filepath.Glob(path)
		if err != nil || len(places) == 0 {
			r.faults.add(path, fmt.Errorf("is a pattern that nothing fits"))
			return nil, false
		}
		return slices.DeleteFunc(places, func(p string) bool { return hidden(filepath.Base(p)) }), true
	} else if err != nil {
		r.faults.add(path, err)
		return nil, false
	} else if !info.IsDir() {
		r.faults.add(path, fmt.Errorf("is a file; a folder with a folder (or an idx pair, or an npz file) a client is expected, or a pattern"))
		return nil, false
	}
	names, ok := r.list(path)
	for _, name := range names {
		places = append(places, filepath.Join(path, name))
	}
	return places, ok
}

// list is what a folder holds that is not hidden, sorted.
func (r *pictureReader) list(path string) (names []string, ok bool) {
	entries, err := os.ReadDir(path)
	if err != nil {
		r.faults.add(path, err)
		return nil, false
	}
	for _, e := range entries {
		if !hidden(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, true
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// clientName is that of the client whose file this is; empty if it names none.
func clientName(file string) string {
	if m := idxName.FindStringSubmatch(file); m != nil {
		return m[1]
	}
	name, ok := strings.CutSuffix(file, ".npz")
	if !ok {
		return ""
	}
	return name
}

func isLabels(path string) bool {
	m := idxName.FindStringSubmatch(filepath.Base(path))
	return m != nil && m[2] == "labels"
}

// partner is the file that belongs to an idx file: labels to pictures, pictures to labels.
func partner(path string) (string, bool) {
	m := idxName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return "", false
	}
	head := strings.TrimSuffix(filepath.Base(path), m[2]+m[3]+"idx"+m[4]+"-ubyte"+m[5])
	others := []string{"labels" + m[3] + "idx1-ubyte"}
	if m[2] == "labels" {
		others = []string{"images" + m[3] + "idx3-ubyte", "images" + m[3] + "idx4-ubyte"}
	}
	for _, other := range others {
		for _, end := range []string{m[5], ".gz", ""} {
			at := filepath.Join(filepath.Dir(path), head+other+end)
			if _, err := os.Stat(at); err == nil {
				return at, true
			}
		}
	}
	return "", false
}

// find finds one client's pictures in its folder, or in its file.
func (r *pictureReader) find(path, name string) pictureClient {
	c := pictureClient{name: name, path: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		r.faults.add(path, err)
	case info.IsDir():
		r.findIn(&c)
	default:
		r.archive(&c, path)
	}
	return c
}

// findIn finds pictures in a client's folder.
func (r *pictureReader) findIn(c *pictureClient) {
	names, ok := r.list(c.path)
	if !ok {
		return
	}
	before := len(r.faults)
	var archives []string
	folders := map[string]bool{}
	for _, name := range names {
		at := filepath.Join(c.path, name)
		info, err := os.Stat(at)
		switch {
		case err != nil:
			r.faults.add(at, err)
		case info.IsDir() && slices.Contains(r.classes, name):
			folders[name] = true
		case info.IsDir():
			r.faults.add(at, fmt.Errorf("is the folder of a class %q that data.classes does not list; allowed: %s", name, strings.Join(r.classes, ", ")))
		case isLabels(name):
			if _, ok := partner(at); !ok {
				r.faults.add(at, fmt.Errorf("has labels, but the file of their pictures is not beside it"))
			}
		case idxName.MatchString(name) || strings.HasSuffix(name, ".npz"):
			archives = append(archives, at)
		default:
			r.faults.add(at, fmt.Errorf("stands outside the class folders; a client's folder holds a folder a class (%s), or one idx pair, or one npz file", strings.Join(r.classes, ", ")))
		}
	}
	for _, name := range r.classes { // in the list's order, whatever the file system's is
		if folders[name] {
			r.findClass(c, filepath.Join(c.path, name), slices.Index(r.classes, name))
		}
	}
	switch {
	case len(archives) > 1 || len(archives) == 1 && len(folders) > 0:
		r.faults.add(c.path, fmt.Errorf("holds %d idx or npz files and %d class folders; allowed: class folders, or one idx pair, or one npz file", len(archives), len(folders)))
	case len(archives) == 1:
		r.archive(c, archives[0])
	case len(c.files) == 0 && len(r.faults) == before:
		r.faults.add(c.path, fmt.Errorf("holds no picture; remove the folder, or put a client's pictures into it"))
	}
}

func (r *pictureReader) findClass(c *pictureClient, folder string, class int) {
	names, _ := r.list(folder)
	for _, name := range names {
		c.files = append(c.files, pictureFile{filepath.Join(folder, name), class})
	}
}

// archive takes an npz file, or an idx file of pictures, as a client's.
func (r *pictureReader) archive(c *pictureClient, path string) {
	switch base := filepath.Base(path); {
	case strings.HasSuffix(base, ".npz"):
		c.archive = path
	case !idxName.MatchString(base) || isLabels(base):
		r.faults.add(path, fmt.Errorf("is no client's; allowed: a folder, an npz file, NAME-images-idx3-ubyte with NAME-labels-idx1-ubyte (or both .gz)"))
	default:
		labels, ok := partner(path)
		if !ok && !r.unlabelled {
			r.faults.add(path, fmt.Errorf("has pictures, but the file of their labels is not beside it"))
			return
		}
		c.archive, c.labels = path, labels
	}
}
