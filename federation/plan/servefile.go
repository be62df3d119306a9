package plan

import (
	"path/filepath"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/identity"
)

// ServeFile is what `coterie serve` reads. Paths are relative to the file.
type ServeFile struct {
	Run             string     `yaml:"run" jsonschema_description:"the run file, seen from the serve file's folder"`
	Listen          string     `yaml:"listen" jsonschema_description:"address for participants, host:port"`
	Admin           string     `yaml:"admin" jsonschema_description:"address for /metrics, /healthz and /readyz, plain HTTP, and for the live page behind a token; empty: none"`
	CA              string     `yaml:"ca" jsonschema_description:"folder of the federation's authority, which coterie ca init made"`
	Store           string     `yaml:"store" jsonschema_description:"where the server keeps what it must remember: sqlite:PATH, or postgres://user@host/name"`
	Out             string     `yaml:"out" jsonschema_description:"folder for the models and the result"`
	Participants    []string   `yaml:"participants" jsonschema_description:"names of those who may take part; their order numbers them"`
	Shape           data.Shape `yaml:"shape" jsonschema_description:"shape of the data; left out: as the run file tells it, or a copy of the data that --data names"`
	Start           int        `yaml:"start" jsonschema:"minimum=0" jsonschema_description:"participants that must be there before the first round; 0: all"`
	Quorum          int        `yaml:"quorum" jsonschema:"minimum=0" jsonschema_description:"releases that close a round before its deadline; 0: all that were asked"`
	Minimum         int        `yaml:"minimum" jsonschema:"minimum=0" jsonschema_description:"with fewer releases at the deadline a round is abandoned; 0: half of those asked"`
	DeadlineSeconds float64    `yaml:"deadline_seconds" jsonschema:"exclusiveMinimum=0,maximum=31536000" jsonschema_description:"how long a round waits"`
	LingerSeconds   float64    `yaml:"linger_seconds" jsonschema:"minimum=0,maximum=31536000" jsonschema_description:"how long a finished server waits for participants to fetch the models"`
	Traces          string     `yaml:"traces" jsonschema_description:"URL of an OpenTelemetry collector (OTLP over HTTP); empty: no traces"`
	Limits          Limits     `yaml:"limits" jsonschema_description:"what the server takes on at once"`
}

// Limits bound what a server takes on at once.
type Limits struct {
	Connections   int     `yaml:"connections" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"connections of participants at once; others are turned away and try again"`
	Uploads       int     `yaml:"uploads" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"releases on their way in at once; others wait"`
	Megabytes     int     `yaml:"megabytes" jsonschema:"minimum=64,maximum=1000000000" jsonschema_description:"memory that the server tries to stay within, without mapped files"`
	UploadSeconds float64 `yaml:"upload_seconds" jsonschema:"exclusiveMinimum=0" jsonschema_description:"how long one release may take to come in"`
}

// LoadServeFile reads a serve file that stands in dir.
func LoadServeFile(text []byte, dir string) (ServeFile, error) {
	f := ServeFile{
		Listen: "127.0.0.1:7443", CA: "ca", Store: "sqlite:server/state.db", Out: "server",
		DeadlineSeconds: 600, LingerSeconds: 60,
		Limits: Limits{Connections: 4096, Uploads: 16, Megabytes: 1024, UploadSeconds: 600},
	}
	if err := config.Decode(text, &f, func() config.Faults { return f.check() }); err != nil {
		return f, err
	}
	f.Run, f.CA, f.Out = under(dir, f.Run), under(dir, f.CA), under(dir, f.Out)
	if path, ok := SQLiteFile(f.Store); ok {
		f.Store = "sqlite:" + under(dir, path)
	}
	return f, nil
}

func (f *ServeFile) check() config.Faults {
	var c config.Checker
	c.Require(f.Run != "", "run", "names no run file")
	c.Require(f.Listen != "", "listen", "is empty; allowed: host:port")
	c.Require(len(f.Participants) > 0, "participants", "names nobody: list those who may take part")
	seen := map[string]bool{}
	for _, name := range f.Participants {
		if err := identity.CheckName(name); err != nil {
			c.Require(false, "participants", "%v: an authority invites no others", err)
		}
		c.Require(!seen[name], "participants", "%q stands twice", name)
		seen[name] = true
	}
	c.Require(f.Start <= len(f.Participants), "start", "%d is more than the %d participants", f.Start, len(f.Participants))
	return c.Faults()
}

// under is path, seen from dir if it is relative.
func under(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// SQLiteFile is the file of an SQLite store, if the address names one.
func SQLiteFile(url string) (string, bool) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return path, true
	}
	return url, !strings.Contains(url, "://")
}

// settle fills in what follows from the number of participants that a round asks.
func (f *ServeFile) settle(asked int) error {
	var c config.Checker
	c.Require(f.Quorum <= asked, "quorum", "%d is more than the %d participants that a round asks", f.Quorum, asked)
	if f.Quorum == 0 {
		f.Quorum = asked
	}
	if f.Minimum == 0 {
		f.Minimum = (f.Quorum + 1) / 2
	}
	c.Require(f.Minimum <= f.Quorum, "minimum", "%d is more than the quorum of %d", f.Minimum, f.Quorum)
	if f.Start == 0 {
		f.Start = len(f.Participants)
	}
	if faults := c.Faults(); faults != nil {
		return faults
	}
	return nil
}
