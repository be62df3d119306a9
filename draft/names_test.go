package draft

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/identity"
)

// TestParticipantsCanBeInvited: whatever clients are called, the drafted names are such as
// an authority invites, and each is another one.
func TestParticipantsCanBeInvited(t *testing.T) {
	long := strings.Repeat("Ä", 80)
	var clients []Client
	for _, name := range []string{"Nord", "nord", "Süd", "Su\u0308d", "West-Ost", "Łódź Ost", "Straße 1", "北京", "上海", "...", "_x", "№ 7", "NORD-2", long, long + "1", "İzmir", ""} {
		clients = append(clients, Client{Name: name})
	}
	names := participants(clients)
	want := "[nord nord-2 sued sud west-ost lodz-ost strasse-1 client client-2 client-3 x 7 nord-2-2 " +
		strings.Repeat("ae", 31) + "a " + strings.Repeat("ae", 30) + "a-2 izmir client-4]"
	if got := fmt.Sprint(names); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i, name := range names {
		if err := identity.CheckName(name); err != nil || slices.Index(names, name) != i {
			t.Errorf("%q: %v, or it stands twice", name, err)
		}
	}
}

// TestJoinFilesNameTheSourcesClient: a participant is called as certificates are, and its rows
// are those of the client as the table has it.
func TestJoinFilesNameTheSourcesClient(t *testing.T) {
	table := "ort,x,y\n" + strings.Repeat("Süd,1.5,0\nWest-Ost,2.5,1\nÄrzte Nord,3.5,1\n", 40)
	dir := write(t, map[string]string{"t.csv": table, "in/Ärzte.csv": strings.ReplaceAll(table, "ort,", "o,"), "in/Süd.csv": strings.ReplaceAll(table, "ort,", "o,")})
	for path, want := range map[string][2]string{
		"t.csv": {"participants: [sued, west-ost, aerzte-nord]", "    client: ort\n  # Of this file only the rows of one client are taken.\n  name: Süd\n"},
		"in":    {"participants: [sued, aerzte]", "  name: Süd\n"},
	} {
		r := Request{Path: filepath.Join(dir, path), Target: "y", Out: dir}
		if path == "t.csv" {
			r.Client = "ort"
		}
		found := 0
		for _, f := range drafted(t, r).Files {
			if f.Name == "serve.yaml" && strings.Contains(f.Text, want[0]) && strings.Contains(f.Text, "coterie ca invite sued --ca ca --out sued.invite") || f.Name == "join.yaml" && strings.Contains(f.Text, want[1]) {
				found++
			}
		}
		if found != 2 {
			t.Errorf("%s: the files of a federation do not name %q", path, want)
		}
	}
}

// TestRunsAreCalledAsTheirTarget, in the letters that a run's name may have.
func TestRunsAreCalledAsTheirTarget(t *testing.T) {
	for target, want := range map[string]string{
		"y": "y", "Rückfall": "Rueckfall", "length of stay": "length-of-stay", "Ärger?": "Aerger-", "_x.1": "x.1", "再入院": "run", "..": "run",
		strings.Repeat("very long ", 9): strings.Repeat("very-long-", 9)[:64],
	} {
		dir := write(t, map[string]string{"t.csv": "site,x," + target + "\n" + strings.Repeat("a,1.5,0\nb,2.5,1\na,3.5,1\n", 40)})
		d := drafted(t, Request{Path: filepath.Join(dir, "t.csv"), Client: "site", Target: strings.TrimSpace(target), Out: dir})
		run, err := config.Resolve([]byte(runFile(t, d)), nil)
		if err != nil || run.Name != want || run.Data.Target != strings.TrimSpace(target) {
			t.Errorf("%q: the run is called %q, want %q; %v", target, run.Name, want, err)
		}
	}
}
