package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
)

// chunkBytes is how much of a blob one row holds.
const chunkBytes = 1 << 20

// tableBlobs are rows.
type tableBlobs struct{ db *sql.DB }

func (tableBlobs) prepare(string, []byte) error { return nil }
func (tableBlobs) settle(*os.File) error        { return nil }
func (tableBlobs) dropped(string)               {}

func (tableBlobs) attach(ctx context.Context, tx *sql.Tx, key string, content io.ReaderAt, size int64) error {
	insert, err := tx.PrepareContext(ctx, "INSERT INTO chunks (key, number, bytes) VALUES ($1, $2, $3)")
	if err != nil {
		return err
	}
	defer insert.Close()
	buffer := make([]byte, min(size, chunkBytes))
	for at := int64(0); at < size; at += chunkBytes {
		piece := buffer[:min(chunkBytes, size-at)]
		if n, err := content.ReadAt(piece, at); n < len(piece) {
			return err
		}
		if _, err := insert.ExecContext(ctx, key, at/chunkBytes, piece); err != nil {
			return err
		}
	}
	return nil
}

func (tableBlobs) drop(ctx context.Context, tx *sql.Tx, key string) error {
	// '/' is followed by '0': everything below the key, and the key itself.
	_, err := tx.ExecContext(ctx, "DELETE FROM chunks WHERE key = $1 OR (key >= $2 AND key < $3)", key, key+"/", key+"0")
	return err
}

func (b tableBlobs) open(ctx context.Context, key string, size int64) (Blob, error) {
	var there int64
	err := b.db.QueryRowContext(ctx, "SELECT COALESCE(SUM(length(bytes)), 0) FROM chunks WHERE key = $1", key).Scan(&there)
	if err != nil {
		return nil, err
	}
	if there != size {
		return nil, fmt.Errorf("%w: %s has %d bytes, %d were recorded", ErrDamaged, key, there, size)
	}
	return &tableBlob{ctx: ctx, db: b.db, key: key, size: size, held: -1}, nil
}

// tableBlob reads one chunk at a time. It belongs to one goroutine.
type tableBlob struct {
	ctx    context.Context // of the reader, as rows have one
	db     *sql.DB
	key    string
	size   int64
	offset int64
	held   int64 // number of the chunk in chunk; -1 if none
	chunk  []byte
}

func (b *tableBlob) Size() int64 { return b.size }

func (b *tableBlob) Close() error { return nil }

func (b *tableBlob) Read(p []byte) (int, error) {
	n, err := b.ReadAt(p, b.offset)
	b.offset += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (b *tableBlob) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fmt.Errorf("read %s at %d: %w", b.key, offset, os.ErrInvalid)
	}
	for n < len(p) {
		at := offset + int64(n)
		if at >= b.size {
			return n, io.EOF
		}
		if number := at / chunkBytes; number != b.held {
			b.held = -1
			if err := b.db.QueryRowContext(b.ctx, "SELECT bytes FROM chunks WHERE key = $1 AND number = $2", b.key, number).Scan(&b.chunk); err != nil {
				return n, fmt.Errorf("read %s: %w", b.key, err)
			}
			b.held = number
		}
		from := at % chunkBytes
		if from >= int64(len(b.chunk)) {
			return n, fmt.Errorf("read %s: %w: a chunk is too short", b.key, ErrDamaged)
		}
		n += copy(p[n:], b.chunk[from:])
	}
	return n, nil
}
