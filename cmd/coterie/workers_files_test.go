package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/coterie-fl/coterie/internal/tier"
)

// packaged reads a file of packaging/, every key of it.
func packaged(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tier.Root(), "packaging", name))
	if err == nil {
		err = yaml.UnmarshalWithOptions(text, into, yaml.Strict())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// workerLine holds a worker's arguments against what the program takes.
func workerLine(t *testing.T, help string, args []string) {
	t.Helper()
	if len(args) == 0 || args[0] != "worker" || !slices.Contains(args, "--nats") {
		t.Errorf("%v is no worker of a queue", args)
	}
	for _, a := range args {
		if strings.HasPrefix(a, "--") && !strings.Contains(help, a+" ") {
			t.Errorf("coterie worker has no %s", a)
		}
	}
}

// TestWorkerFiles: what starts workers in containers names flags that there are, lets them
// do no more than they need, and gives them the time to hand a cell back.
func TestWorkerFiles(t *testing.T) {
	help, _, _ := coterie(t, "worker", "--help")
	var compose struct {
		Services map[string]struct {
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
			DependsOn   []string      `yaml:"depends_on"`
		} `yaml:"services"`
		Volumes map[string]any `yaml:"volumes"`
	}
	packaged(t, "workers.compose.yaml", &compose)
	worker, queue := compose.Services["worker"], compose.Services["queue"]
	workerLine(t, help, worker.Command)
	if worker.Image != "coterie" || worker.Grace < 25*time.Second || !slices.Contains(queue.Command, "-js") || !strings.HasPrefix(queue.Ports[0], "127.0.0.1:") {
		t.Errorf("worker %+v, queue %+v", worker, queue)
	}
	for name, s := range compose.Services {
		volume, _, _ := strings.Cut(s.Volumes[0], ":")
		if _, ok := compose.Volumes[volume]; !ok || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s may do more than it needs, or has no volume: %+v", name, s)
		}
	}

	var file manifest
	packaged(t, "workers.kubernetes.yaml", &file)
	pod := file.Spec.Template.Spec
	if file.APIVersion != "apps/v1" || file.Kind != "Deployment" || file.Spec.Selector.Labels["app"] != file.Spec.Template.Metadata.Labels["app"] || len(pod.Containers) != 1 {
		t.Fatalf("%+v", file)
	}
	c := pod.Containers[0]
	workerLine(t, help, c.Args)
	if !pod.Security.NonRoot || pod.Security.User != 65532 || pod.Token || pod.Grace < 25 || !c.Security.ReadOnly || c.Security.Escalation || !slices.Equal(c.Security.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("the pod may do more than it needs: %+v", pod)
	}
	var names, mounted []string
	for _, v := range pod.Volumes {
		names = append(names, v.Name)
	}
	for _, m := range c.Mounts {
		mounted = append(mounted, m.Path)
		if !slices.Contains(names, m.Name) {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	for i, a := range c.Args { // what the worker reads and writes is mounted
		inside := func(path string) bool { return path == a || strings.HasPrefix(a, path+"/") }
		if i > 0 && strings.HasPrefix(a, "/") && !slices.ContainsFunc(mounted, inside) {
			t.Errorf("%s %s is not mounted: %v", c.Args[i-1], a, mounted)
		}
	}
}

// manifest is what the Kubernetes file says, every key of it.
type manifest struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       struct {
		Replicas int `yaml:"replicas"`
		Selector struct {
			Labels map[string]string `yaml:"matchLabels"`
		} `yaml:"selector"`
		Template struct {
			Metadata metadata `yaml:"metadata"`
			Spec     struct {
				Token    bool `yaml:"automountServiceAccountToken"`
				Grace    int  `yaml:"terminationGracePeriodSeconds"`
				Security struct {
					NonRoot bool              `yaml:"runAsNonRoot"`
					User    int               `yaml:"runAsUser"`
					Group   int               `yaml:"fsGroup"`
					Seccomp map[string]string `yaml:"seccompProfile"`
				} `yaml:"securityContext"`
				Containers []container `yaml:"containers"`
				Volumes    []struct {
					Name   string         `yaml:"name"`
					Secret map[string]any `yaml:"secret"`
					Empty  map[string]any `yaml:"emptyDir"`
				} `yaml:"volumes"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

type container struct {
	Name      string                       `yaml:"name"`
	Image     string                       `yaml:"image"`
	Args      []string                     `yaml:"args"`
	Resources map[string]map[string]string `yaml:"resources"`
	Security  struct {
		Escalation   bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly     bool `yaml:"readOnlyRootFilesystem"`
		Capabilities struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Mounts []struct {
		Name     string `yaml:"name"`
		Path     string `yaml:"mountPath"`
		ReadOnly bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}
