/*
Package federation is server and participant over the network: the same fl, another shell.

# Who talks to whom

A server asks participants for releases and aggregates them; participants dial out, and
know nobody but the server. The coordinator opens a round, participants ask for work and
fetch the round's broadcast, train, and upload one release each; at the quorum or the
deadline the round closes. Who may speak is decided by certificates of the federation's
own authority. The packages:

	wire         the service's messages, generated from federation.proto
	identity     authority, invitations, certificates
	plan         what is agreed before a run: the plan, the policy, serve and join files
	transfer     what both ends must agree on: parts, encodings, refusals
	store        what the server must remember, in SQLite or PostgreSQL
	trainer      a program that trains in the participant's place
	server       Serve: rounds, uploads, receipts, aggregation
	participant  Join: the loop, the checks, the answer, its delivery

Whoever embeds a federation calls server.Serve with a plan.ServeFile, and
participant.Enrol and participant.Join with a plan.JoinFile and a plan.Policy.

# What is durable when

The participant's ledger has the charge of a release before noise is drawn, and the
noised bytes before they are sent; a retry sends the same bytes. What the participant
needs to make the next round is saved before its release is stored. The server records a
round before anyone is asked, a release with its signed receipt before it is acknowledged,
and the state after a round together with the round's end. So each side may be killed at
any instruction and started again: nothing is paid twice, nothing is counted twice, and a
receipt that got lost is repeated.

# What a hostile server can try

It chooses plan and broadcasts. A participant holds the plan against its policy and all
that the plan can cost against its ledger, before the first release; every broadcast
against the plan (radius, spread, lattice, lengths) and against the policy's own bounds,
before data is touched. Whether it answers follows from public and paid numbers alone:
training that fails ends in a release of noise around a fixed vector. The seed of what is
drawn at home is the participant's own, and answers can be held back until a public time.
An old copy of the ledger is found out by the server's last receipt, and by a witness.

# What a hostile participant can try

It is known by its certificate, and has a share of connections, requests and uploads that
it cannot exceed. Every value of a release is held against the run's public bounds as it
comes in; other bytes for a slot that is taken are refused and recorded; a state that no
further round could begin with is never recorded. Strangers have a room of their own at
the door. What a release says within its bounds is not checked: a participant can spoil a
model, not the server.
*/
package federation
