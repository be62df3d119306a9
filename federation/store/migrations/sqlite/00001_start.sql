-- Times are nanoseconds since 1970 in UTC; 0 means never.
-- +goose Up
CREATE TABLE holder (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch BIGINT NOT NULL -- rises whenever a server takes the store
);
INSERT INTO holder (one, epoch) VALUES (1, 0);

CREATE TABLE runs (
    id      TEXT PRIMARY KEY,
    file    BLOB NOT NULL,
    sha256  TEXT NOT NULL,
    status  TEXT NOT NULL,
    detail  TEXT NOT NULL,
    created BIGINT NOT NULL
);

CREATE TABLE participants (
    run       TEXT NOT NULL REFERENCES runs (id),
    place     BIGINT NOT NULL,
    name      TEXT NOT NULL,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (run, place),
    UNIQUE (run, name)
);

CREATE TABLE rounds (
    run      TEXT NOT NULL REFERENCES runs (id),
    number   BIGINT NOT NULL,
    status   TEXT NOT NULL CHECK (status IN ('open', 'closed', 'abandoned')),
    sampler  BLOB NOT NULL,
    deadline BIGINT NOT NULL,
    opened   BIGINT NOT NULL,
    ended    BIGINT NOT NULL,
    reason   TEXT NOT NULL,
    PRIMARY KEY (run, number)
);

CREATE TABLE assignments (
    run         TEXT NOT NULL,
    round       BIGINT NOT NULL,
    participant BIGINT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('waiting', 'released', 'declined')),
    sha256      BLOB NOT NULL,
    size        BIGINT NOT NULL,
    reason      TEXT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (run, round, participant),
    FOREIGN KEY (run, round) REFERENCES rounds (run, number)
);

CREATE TABLE equivocations (
    run         TEXT NOT NULL,
    round       BIGINT NOT NULL,
    participant BIGINT NOT NULL,
    sha256      BLOB NOT NULL,
    size        BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (run, round, participant, sha256),
    FOREIGN KEY (run, round, participant) REFERENCES assignments (run, round, participant)
);

CREATE TABLE states (
    run    TEXT NOT NULL,
    round  BIGINT NOT NULL,
    sha256 BLOB NOT NULL,
    size   BIGINT NOT NULL,
    PRIMARY KEY (run, round),
    FOREIGN KEY (run, round) REFERENCES rounds (run, number)
);

CREATE TABLE receipts (
    participant TEXT NOT NULL,
    counter     BIGINT NOT NULL,
    head        BLOB NOT NULL,
    run         TEXT NOT NULL,
    round       BIGINT NOT NULL,
    signed      BLOB NOT NULL,
    PRIMARY KEY (participant, counter),
    UNIQUE (run, round, participant),
    FOREIGN KEY (run, round) REFERENCES rounds (run, number)
);

-- +goose Down
DROP TABLE receipts;
DROP TABLE states;
DROP TABLE equivocations;
DROP TABLE assignments;
DROP TABLE rounds;
DROP TABLE participants;
DROP TABLE runs;
DROP TABLE holder;
