package store

import (
	"strings"
	"testing"
)

// TestStoreOfANewerVersion: a store that a newer version has brought up to date is not
// opened by an older one, which would not know what it means.
func TestStoreOfANewerVersion(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s := b.open(t)
		_, err := s.(*sqlStore).db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9, true)")
		check(t, err)
		check(t, s.Close())
		if again, err := Open(t.Context(), b.address, b.options); err == nil {
			check(t, again.Close())
			t.Error("it was opened")
		} else if !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "newer") {
			t.Errorf("got %v", err)
		}
	})
}
