// Package inputs names the files that runs read by what they hold, so that a worker elsewhere has the same ones or none.
package inputs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/sweep/cells"
)

// Parts are the parts of the folder of real data that a cell looks for: the hash of each,
// or nothing where it is not there.
type Parts map[string]string

// Sent is a run as it travels: its own files are named by their hashes.
type Sent struct {
	Run   config.Run `json:"run"`
	Start string     `json:"start,omitempty"` // model.start, which a run's JSON leaves out
	Parts Parts      `json:"parts,omitempty"`
}

// Identity is what the run's result depends on: neither on its name, nor on how it is
// spread over a machine.
func (s Sent) Identity() any {
	s.Run.Name, s.Run.Run = "", config.Execution{}
	return s
}

// scheme stands before a path that was replaced by the hash of its files.
const scheme = "sha256:"

// Post sends what runs read, every file once.
type Post struct {
	Store cells.Objects

	mu    sync.Mutex
	known map[string]string // by path: what it became
}

// Send is the run as it travels; what it reads is in the store afterwards. Folder is the
// one that holds real data: it is read once for every block of data, to see what is looked
// for in it.
func (p *Post) Send(ctx context.Context, run config.Run, folder *data.Folder) (Sent, error) {
	sent := Sent{Run: run}
	if db := run.Data.Source.Database; db != "" && !strings.HasPrefix(db, "sqlite:") {
		return sent, fmt.Errorf("%w: data.source.database is %s, but workers find data by what files hold, and a database may answer each of them otherwise; write the query's rows to a CSV or Parquet file and name that", config.ErrInvalid, db)
	}
	for _, path := range ownPaths(&sent.Run) {
		var err error
		if *path, err = p.post(ctx, *path); err != nil {
			return sent, err
		}
	}
	if file, ok := strings.CutPrefix(sent.Run.Data.Source.Database, "sqlite:"); ok {
		name, err := p.post(ctx, file)
		if err != nil {
			return sent, err
		}
		sent.Run.Data.Source.Database = "sqlite:" + name
	}
	sent.Start = sent.Run.Model.Start
	parts, err := p.partsOf(ctx, run, folder)
	sent.Parts = parts
	return sent, err
}

// ownPaths are the keys of a run file that name files.
func ownPaths(run *config.Run) []*string {
	d := &run.Data
	return []*string{&d.Source.Path, &d.Test.Path, &d.Projection, &d.Merges, &run.Model.Start}
}

// partsOf sends what a run looks for in the folder of real data.
func (p *Post) partsOf(ctx context.Context, run config.Run, folder *data.Folder) (Parts, error) {
	kind, err := data.KindOf(run.Data)
	if err != nil || folder.Path() == "" || kind.Get == "" {
		return nil, err
	}
	block, err := json.Marshal(run.Data)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	names, ok := p.known["data "+string(block)]
	p.mu.Unlock()
	var asked map[string]bool
	if ok {
		err = json.Unmarshal([]byte(names), &asked)
	} else {
		alone := data.NewFolder(folder.Path()) // so that it tells of this block alone
		if _, err = alone.Load(run.Data, run.Seed); err != nil {
			return nil, err
		}
		asked = alone.Asked()
		var text []byte
		text, err = json.Marshal(asked)
		p.remember("data "+string(block), string(text))
	}
	if err != nil {
		return nil, err
	}
	return p.SendParts(ctx, folder.Path(), asked)
}

// SendParts sends parts of the folder of real data, and says what each is.
func (p *Post) SendParts(ctx context.Context, folder string, asked map[string]bool) (Parts, error) {
	parts := Parts{}
	for _, part := range slices.Sorted(maps.Keys(asked)) {
		if !asked[part] {
			parts[part] = ""
			continue
		}
		name, err := p.post(ctx, filepath.Join(folder, part))
		if err != nil {
			return nil, err
		}
		parts[part] = strings.TrimPrefix(name, scheme)
	}
	return parts, nil
}

func (p *Post) remember(key, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]string{}
	}
	p.known[key] = value
}

// post sends what a path names, the first time that it is asked for, and is the name by
// which a worker knows it: the tree's hash, and what is left of the path.
func (p *Post) post(ctx context.Context, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	p.mu.Lock()
	name, ok := p.known[path]
	p.mu.Unlock()
	if ok {
		return name, nil
	}
	t, rest, err := treeOf(path)
	if err != nil {
		return "", fmt.Errorf("what workers are to read: %w", err)
	}
	if err := t.send(ctx, p.Store); err != nil {
		return "", err
	}
	_, hash, err := t.list()
	if name = scheme + hash; rest != "" {
		name += "/" + rest
	}
	p.remember(path, name)
	return name, err
}

// Cache is where a worker lays out what it fetched.
type Cache struct {
	Folder string // of fetched files
	Data   string // folder of real data of the worker's own; empty: there is none
	Store  cells.Objects

	mu     sync.Mutex
	hashes map[string]string // of the own folder's parts
	read   []kept            // what runs have read, the newest last
}

// kept is what was read for one block of data.
type kept struct {
	block  string
	folder *data.Folder
}

// mostKept is how many blocks of data a worker holds in memory.
const mostKept = 4

// Receive is the run with paths of this machine, and its folder of real data, which
// remembers what was read for the same block of data before.
func (c *Cache) Receive(ctx context.Context, s Sent) (config.Run, *data.Folder, error) {
	run := s.Run
	run.Model.Start = s.Start
	for _, path := range ownPaths(&run) {
		if err := c.place(ctx, path); err != nil {
			return run, nil, err
		}
	}
	if file, ok := strings.CutPrefix(run.Data.Source.Database, "sqlite:"); ok {
		if err := c.place(ctx, &file); err != nil {
			return run, nil, err
		}
		run.Data.Source.Database = "sqlite:" + file
	}
	path, err := c.ReceiveParts(ctx, s.Parts)
	if err != nil {
		return run, nil, err
	}
	block, err := json.Marshal(run.Data)
	return run, c.keeping(path+" "+string(block), path), err
}

func (c *Cache) keeping(block, path string) *data.Folder {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.read {
		if k.block == block {
			c.read = append(slices.Delete(c.read, i, i+1), k)
			return k.folder
		}
	}
	k := kept{block, data.NewFolder(path).Keeping()}
	c.read = append(c.read[max(0, len(c.read)-mostKept+1):], k)
	return k.folder
}

// place makes a path of this machine of one that travelled.
func (c *Cache) place(ctx context.Context, path *string) error {
	name, ok := strings.CutPrefix(*path, scheme)
	if !ok {
		return nil
	}
	hash, rest, _ := strings.Cut(name, "/")
	folder, err := c.folder(hash)
	if err == nil {
		err = fetch(ctx, c.Store, hash, folder)
	}
	*path = filepath.Join(folder, filepath.FromSlash(rest))
	return err
}

func (c *Cache) folder(hash string) (string, error) {
	if len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is no hash of files", hash)
	}
	return filepath.Join(c.Folder, hash), nil
}

// ReceiveParts is the folder of real data for a cell: the worker's own where it holds the
// same files, else one with what was fetched.
func (c *Cache) ReceiveParts(ctx context.Context, parts Parts) (string, error) {
	same := true
	for part, hash := range parts {
		same = same && c.own(part) == hash
	}
	if same {
		return c.Data, nil
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	root := filepath.Join(c.Folder, "parts-"+hashOf(text))
	for part, hash := range parts {
		if hash == "" {
			continue
		}
		if !filepath.IsLocal(part) {
			return "", fmt.Errorf("%q lies outside of the folder of real data", part)
		}
		if err := c.fetchPart(ctx, hash, filepath.Join(root, part)); err != nil {
			return "", fmt.Errorf("the real data %q, of the hash %.12s: this worker's folder (--data or COTERIE_DATA) has other files there or none, and they cannot be fetched: %w", part, hash, err)
		}
	}
	return root, nil
}

// fetchPart lays a folder out, or a single file, whose name follows its tree's hash.
func (c *Cache) fetchPart(ctx context.Context, name, to string) error {
	hash, file, single := strings.Cut(name, "/")
	if !single {
		return fetch(ctx, c.Store, hash, to)
	}
	if exists(to) {
		return nil
	}
	folder, err := c.folder(hash)
	if err == nil {
		err = fetch(ctx, c.Store, hash, folder)
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(file)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(to, content, 0o600)
}

// own is the hash of a part of the worker's own folder, read once; empty: it is not there.
func (c *Cache) own(part string) string {
	if c.Data == "" || !filepath.IsLocal(part) {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if hash, ok := c.hashes[part]; ok {
		return hash
	}
	hash := ""
	if t, rest, err := treeOf(filepath.Join(c.Data, part)); err == nil {
		if _, hash, _ = t.list(); rest != "" {
			hash += "/" + rest
		}
	}
	if c.hashes == nil {
		c.hashes = map[string]string{}
	}
	c.hashes[part] = hash
	return hash
}
