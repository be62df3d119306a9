-- Bytes of small updates, until their round ends: a file for each would cost two syncs.
-- +goose Up
CREATE TABLE small (
    run         TEXT NOT NULL,
    round       BIGINT NOT NULL,
    participant BIGINT NOT NULL,
    bytes       BLOB NOT NULL,
    PRIMARY KEY (run, round, participant)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE small;
