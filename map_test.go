// Package coterie_test checks the map of the repository.
package coterie_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/coterie-fl/coterie"

// levels is the map: a package imports only packages of lower levels.
var levels = map[string]int{
	"internal/rng": 0, "internal/tier": 0, "internal/pool": 0, "internal/durable": 0, "internal/kernel": 0, "federation/wire": 0, "dp/event": 0, "data/bytepair": 0, "config": 0,
	"internal/tier/browser": 1, "report/prose": 0, "report/progress": 0,
	"dp/account": 1, "dp/mech": 1, "data": 1, "fair": 1, "report/chart": 1, "report/layout": 1,
	"data/contacts": 2, "data/source": 2, "model": 2, "dp/whatif": 2, "ledger": 2, "theory": 2, "report/layout/layouttest": 2, "report/study": 2,
	"sweep/cells": 1, "sweep/queue": 2, "sweep/inputs": 2,
	"internal/cuda/kernels": 0, "internal/cuda": 3, "internal/cuda/device": 4, "internal/cuda/cudatest": 4, "internal/compute": 4, "cmd/coterie-cuda": 5,
	"draft": 3, "report/population": 3, "fl": 3, "metrics": 3, "federation/identity": 3, "federation/store": 3, "federation/trainer": 3,
	"artifact": 4, "artifact/onnx": 4, "federation/plan": 4, "federation/transfer": 4, "federation/backup": 5,
	"fl/cluster": 4, "fl/fltest": 4, "fl/evaluate": 4, "fl/protect": 5, "fl/method": 5,
	"sim": 6, "all": 6, "federation/server": 6, "federation/participant": 6, "federation/identity/identitytest": 6,
	"audit": 7, "sweep": 7, "federation": 7, "federation/operator": 7, "report/federated": 7, "repro/lab": 7,
	"audit/membership": 8, "audit/certificate": 9, "report": 8, "report/tuning": 8, "internal/manual": 8, "repro/lab/labtest": 8, "repro/groupprivacy": 8,
	"repro/boundeddp": 9, "repro/clipping": 9, "repro/crossing": 9, "repro/fairness": 9, "repro/inversion": 9, "repro/meanestimation": 9, "repro/membership": 9, "repro/pandemic": 9, "repro/pca": 9, "repro/robust": 9, "repro/silos": 9, "web/calculator": 9, "web/calculator/panel": 8, "web/live": 10,
	"repro": 10, "federation/federationtest": 10,
	"cmd/coterie": 11,
}

type listed struct {
	ImportPath string
	Doc        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			all = append(all, p)
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		level, ok := levels[name]
		if !ok {
			t.Errorf("%s is not on the map: give it a level", name)
			continue
		}
		for _, path := range p.Imports {
			other, ours := strings.CutPrefix(path, module+"/")
			if ours && levels[other] >= level {
				t.Errorf("%s (level %d) imports %s (level %d)", name, level, other, levels[other])
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		want := "Package " + p.ImportPath[strings.LastIndexByte(p.ImportPath, '/')+1:] + " "
		if strings.HasPrefix(p.ImportPath, module+"/cmd/") {
			want = "Command "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s has the package comment %q, want one that starts with %q", p.ImportPath, p.Doc, want)
		}
	}
}

// TestCoreHasNoClockNetworkOrDisk: what decides about privacy and training can
// be replayed.
func TestCoreHasNoClockNetworkOrDisk(t *testing.T) {
	forbidden := map[string]string{
		"time": "no clock", "net": "no network", "net/http": "no network", "os": "no disk",
		"math/rand": "keyed streams only", "sync": "no goroutines of its own",
	}
	for _, p := range packages(t) {
		switch strings.TrimPrefix(p.ImportPath, module+"/") {
		case "fl", "fl/cluster", "fl/protect", "fl/method", "model", "dp/event", "dp/account", "dp/mech", "internal/rng", "config":
			for _, path := range p.Imports {
				if why := forbidden[path]; why != "" {
					t.Errorf("%s imports %s: %s", p.ImportPath, path, why)
				}
			}
		}
	}
}
