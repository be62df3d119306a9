// Package packaging_test runs what packaging/ holds: the image, the compose file, the units.
package packaging_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	_ "github.com/coterie-fl/coterie/all" // what the run file names
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/internal/tier"
)

// read is the text of a file of the checkout.
func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{tier.Root()}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDockerignore: the builder is handed every folder that the program is made of, and
// no other.
func TestDockerignore(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}", "./cmd/coterie")
	list.Dir = tier.Root()
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"go.mod": true, "go.sum": true}
	for _, path := range strings.Fields(string(out)) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, "github.com/coterie-fl/coterie/"), "/")
		want[folder] = true
	}
	got := map[string]bool{}
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if folder, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			got[folder] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf(".dockerignore lets in %v; the program is made of %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// service is what compose.yaml says of one.
type service struct {
	Image       string        `yaml:"image"`
	Command     []string      `yaml:"command"`
	Volumes     []string      `yaml:"volumes"`
	Ports       []string      `yaml:"ports"`
	Tmpfs       []string      `yaml:"tmpfs"`
	ReadOnly    bool          `yaml:"read_only"`
	CapDrop     []string      `yaml:"cap_drop"`
	SecurityOpt []string      `yaml:"security_opt"`
	Grace       time.Duration `yaml:"stop_grace_period"`
	Restart     string        `yaml:"restart"`
}

// TestComposeFile: where no containers can be run, the compose file is at least held
// against the files that it names and against what the program takes; and so is what
// podman-compose does not read.
func TestComposeFile(t *testing.T) {
	var file struct {
		Services     map[string]service `yaml:"services"`
		Volumes      map[string]any     `yaml:"volumes"`
		XCoterie     any                `yaml:"x-coterie"`
		XParticipant any                `yaml:"x-participant"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(read(t, "packaging", "compose.yaml")), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	served, err := plan.LoadServeFile([]byte(read(t, "packaging", "compose", "serve.yaml")), "/data")
	if err != nil {
		t.Fatal(err)
	}
	joined, err := plan.LoadJoinFile([]byte(read(t, "packaging", "compose", "join.yaml")), "/data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.LoadPolicy([]byte(read(t, "packaging", "compose", "policy.yaml"))); err != nil {
		t.Error(err)
	}
	if _, err := plan.Read(filepath.Join(tier.Root(), "packaging", "compose", filepath.Base(served.Run))); err != nil {
		t.Error(err)
	}
	host, port, _ := strings.Cut(served.Listen, ":")
	if got := file.Services["server"].Ports; host != "0.0.0.0" || !slices.Equal(got, []string{port + ":" + port}) {
		t.Errorf("the server listens on %s; published: %v", served.Listen, got)
	}
	if len(file.Services) != 1+len(served.Participants) || len(file.Volumes) != len(file.Services) {
		t.Errorf("%d services and %d volumes for %d participants", len(file.Services), len(file.Volumes), len(served.Participants))
	}
	for name, s := range file.Services {
		want, needs := []string{"join", "join.yaml"}, []string{"/data/join.yaml", joined.Policy}
		if name == "server" {
			want, needs = []string{"serve", "serve.yaml"}, []string{"/data/serve.yaml", served.Run}
		} else if !slices.Contains(served.Participants, name) {
			t.Errorf("%s is no participant of serve.yaml", name)
		}
		if !slices.Equal(s.Command, want) {
			t.Errorf("%s runs %v, want %v", name, s.Command, want)
		}
		if _, ok := file.Volumes[name]; !ok || !slices.Contains(s.Volumes, name+":/data") {
			t.Errorf("%s has no volume of its own: %v", name, s.Volumes)
		}
		for _, path := range needs {
			source := "compose/" + filepath.Base(path)
			if !slices.Contains(s.Volumes, "./"+source+":"+path+":ro") {
				t.Errorf("%s does not see %s: %v", name, path, s.Volumes)
			}
			read(t, "packaging", source)
		}
		// The server waits 20 seconds for releases on their way; Docker kills after 10 unless told.
		if s.Grace < 25*time.Second || s.Restart != "on-failure:5" || s.Image != "coterie" {
			t.Errorf("%s: grace %s, restart %s, image %s", name, s.Grace, s.Restart, s.Image)
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || !slices.Equal(s.Tmpfs, []string{"/tmp"}) {
			t.Errorf("%s may do more than the documents say: %+v", name, s)
		}
	}
}
