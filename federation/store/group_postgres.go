package store

import (
	"context"
	"database/sql"
)

// writeWhole records a whole group in PostgreSQL, whose updates are all of one round: a
// statement a table, a list a column. So there are three ways to the database and back,
// however many updates there are, and the database knows the three statements.
func writeWhole(ctx context.Context, tx *sql.Tx, group []*acceptance) error {
	if len(group) == 0 {
		return nil
	}
	run, round := group[0].update.Run, group[0].update.Round
	who := column(group, func(a *acceptance) int64 { return int64(a.update.Participant) })
	_, err := tx.ExecContext(ctx, `INSERT INTO small (run, round, participant, bytes)
		SELECT $1, $2, participant, bytes FROM unnest($3::bigint[], $4::bytea[]) AS new (participant, bytes)`,
		run, round, who, column(group, func(a *acceptance) []byte { return a.content }))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE assignments SET kind = 'released', sha256 = new.sha256, size = new.size, at = new.at
		FROM unnest($3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[]) AS new (participant, sha256, size, at)
		WHERE assignments.run = $1 AND assignments.round = $2 AND assignments.participant = new.participant`,
		run, round, who,
		column(group, func(a *acceptance) []byte { return a.update.SHA256[:] }),
		column(group, func(a *acceptance) int64 { return a.update.Size }),
		column(group, func(a *acceptance) int64 { return fromTime(a.update.At) }))
	if err != nil {
		return err
	}
	var signed []*acceptance
	for _, a := range group {
		if a.receipt != nil {
			signed = append(signed, a)
		}
	}
	if len(signed) == 0 {
		return nil
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO receipts (run, round, participant, counter, head, signed)
		SELECT $1, $2, participant, counter, head, signed FROM unnest($3::text[], $4::bigint[], $5::bytea[], $6::bytea[]) AS new (participant, counter, head, signed)`,
		run, round,
		column(signed, func(a *acceptance) string { return a.receipt.Participant }),
		column(signed, func(a *acceptance) int64 { return int64(a.receipt.Counter) }),
		column(signed, func(a *acceptance) []byte { return a.receipt.Head[:] }),
		column(signed, func(a *acceptance) []byte { return append([]byte{}, a.receipt.Signed...) })) // and not NULL
	return err
}

// column is what a group has in one place of its rows.
func column[T any](group []*acceptance, of func(a *acceptance) T) []T {
	all := make([]T, len(group))
	for i, a := range group {
		all[i] = of(a)
	}
	return all
}
