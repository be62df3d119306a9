package certificate

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/ledger"
)

// Verified is a certificate whose signature fits.
type Verified struct {
	Certificate Certificate `json:"certificate"`
	Key         ledger.Key  `json:"key"`
	KeyIsKnown  bool        `json:"key_is_known"` // it was given, not only found in the file
	PageIsThere bool        `json:"page_is_there"`
	RunIsThere  bool        `json:"run_is_there"`
}

// mostBytes bounds what a certificate's file may hold.
const mostBytes = 64 << 20

// Verify checks a certificate's signature: by a key, if one is given, and otherwise by the
// one in the file, which anybody can put there. The page beside it must be the one that was
// signed. A run directory, if given, must hold the run that it is of.
func Verify(path string, key *ledger.Key, run string) (Verified, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, File)
	}
	v, err := verify(path, key, run)
	if err != nil {
		return v, fmt.Errorf("certificate: %s: %w", path, err)
	}
	return v, nil
}

func verify(path string, key *ledger.Key, run string) (v Verified, err error) {
	text, err := readAtMost(path, mostBytes)
	if err != nil {
		return v, err
	}
	var signed Signed
	if err := strictly(text, &signed); err != nil {
		return v, fmt.Errorf("this is no certificate; give the %s that audit certify wrote: %w", File, err)
	}
	message, err := signedBytes(signed.Certificate)
	if err != nil {
		return v, err
	}
	v.Key = signed.Key
	if key != nil {
		if v.Key != *key {
			return v, fmt.Errorf("%w: it is signed with the key %s, not with the one that was given", ErrForged, v.Key)
		}
		v.KeyIsKnown = true
	}
	if !ed25519.Verify(v.Key[:], message, signed.Signature[:]) {
		return v, fmt.Errorf("%w: the certificate, its key or its signature was changed", ErrForged)
	}
	if err := strictly(signed.Certificate, &v.Certificate); err != nil {
		return v, err
	}
	if f := v.Certificate.Format; f != Format {
		return v, fmt.Errorf("its format is %q; this version reads %q", f, Format)
	}
	if v.PageIsThere, err = pageFits(filepath.Join(filepath.Dir(path), PageFile), v.Certificate.Page); err != nil {
		return v, err
	}
	if run != "" {
		if err := v.Certificate.Identity.fits(run); err != nil {
			return v, err
		}
		v.RunIsThere = true
	}
	return v, nil
}

func pageFits(path, want string) (bool, error) {
	got, err := fileHash(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case got != want:
		return false, fmt.Errorf("%w: %s is not the page that was signed", ErrChanged, path)
	}
	return true, nil
}

// fits says whether a run directory is the one that was looked at.
func (id Identity) fits(dir string) error {
	s, err := open(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, one := range []struct{ what, got, want string }{
		{"the model", s.Model, id.Model}, {"the run file", s.Config, id.Config}, {"the result", s.ResultFile, id.ResultFile},
	} {
		if one.got != one.want {
			return fmt.Errorf("%w: %s of %s has the hash %s, and the certificate is of %s", ErrChanged, one.what, dir, one.got, one.want)
		}
	}
	return nil
}

// strictly reads one value of JSON, with no key that is not known and nothing behind it.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something stands behind it")
	}
	return nil
}

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("more than %d bytes; a certificate has fewer", most)
	}
	return text, err
}
