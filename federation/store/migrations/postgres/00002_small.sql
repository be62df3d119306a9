-- Bytes of small updates, until their round ends.
-- +goose Up
CREATE TABLE small (
    run         TEXT NOT NULL,
    round       BIGINT NOT NULL,
    participant BIGINT NOT NULL,
    bytes       BYTEA NOT NULL,
    PRIMARY KEY (run, round, participant)
);
ALTER TABLE small ALTER COLUMN bytes SET STORAGE EXTERNAL; -- noise does not compress

-- +goose Down
DROP TABLE small;
