package persist

import (
	"encoding/binary"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

type place struct {
	stream identity.AgentID
	seq    uint64
}

// writer puts batches into one transaction.
type writer struct {
	tx      *bolt.Tx
	seq     uint64
	places  []place // of the events written
	indexed bool

	log, inbox, delayed, runnable, records *bolt.Bucket
}

func (w *writer) open(tx *bolt.Tx) {
	w.tx = tx
	w.log, w.inbox, w.delayed = tx.Bucket(bucketLog), tx.Bucket(bucketInbox), tx.Bucket(bucketDelayed)
	w.runnable, w.records = tx.Bucket(bucketRunnable), tx.Bucket(bucketRecords)
	w.log.FillPercent = 0.95 // keys only grow
}

func (w *writer) batch(c *commit) error {
	b := c.batch
	return errors.Join(
		w.events(c),
		w.take(b.Stream, b.Take),
		w.post(b.Post, c.mail),
		w.arrive(b.Arrived, c.mail[len(b.Post):]),
		w.drop(b.Drop),
		w.put(b.Put),
		w.rest(b),
	)
}

func (w *writer) next() uint64 {
	w.seq++
	return w.seq
}

func (w *writer) events(c *commit) error {
	for i, payload := range c.events {
		e := &c.batch.Events[i]
		e.Seq = w.next()
		if err := put(w.log, bucketLog, numberKey(e.Seq), kindEvent, payload); err != nil {
			return err
		}
		w.places = append(w.places, place{e.Stream, e.Seq})
	}
	return nil
}

func (w *writer) post(messages []journal.Message, payloads [][]byte) error {
	for i := range messages {
		m := &messages[i]
		m.Seq = w.next()
		if err := w.deliver(m, payloads[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) deliver(m *journal.Message, payload []byte) error {
	if !m.Due.IsZero() {
		return put(w.delayed, bucketDelayed, dueKey(m), kindMessage, payload)
	}
	to := identity.AgentID(m.To)
	if err := put(w.inbox, bucketInbox, agentSeqKey(to, m.Seq), kindMessage, payload); err != nil {
		return err
	}
	return w.wake(to)
}

func (w *writer) wake(id identity.AgentID) error {
	return put(w.runnable, bucketRunnable, agentKey(id), kindAgent, nil)
}

// arrive moves delayed messages to their inboxes, behind what is there.
func (w *writer) arrive(messages []journal.Message, payloads [][]byte) error {
	for i, m := range messages {
		if err := w.delayed.Delete(dueKey(&m)); err != nil {
			return err
		}
		m.Due, m.Seq = time.Time{}, w.next()
		if err := w.deliver(&m, payloads[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) take(stream identity.AgentID, taken []uint64) error {
	for _, seq := range taken {
		if err := w.inbox.Delete(agentSeqKey(stream, seq)); err != nil {
			return err
		}
	}
	return nil
}

// drop empties the inboxes of agents that are no more.
func (w *writer) drop(agents []identity.AgentID) error {
	for _, id := range agents {
		for _, key := range w.waitingFor(id) {
			if err := w.inbox.Delete(key); err != nil {
				return err
			}
		}
		if err := w.runnable.Delete(agentKey(id)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) waitingFor(id identity.AgentID) [][]byte {
	var list [][]byte
	for key := range under(w.inbox, agentKey(id)) {
		list = append(list, key)
	}
	return list
}

func (w *writer) put(records []journal.Record) error {
	for _, r := range records {
		key := recordKey(r.Kind, r.Key)
		if r.Value == nil {
			if err := w.records.Delete(key); err != nil {
				return err
			}
			continue
		}
		if err := put(w.records, bucketRecords, key, kindRecord, r.Value); err != nil {
			return err
		}
	}
	return nil
}

// rest keeps the runnable mark of the batch's agent: on while it works, off
// when it is idle and nothing waits for it.
func (w *writer) rest(b *journal.Batch) error {
	switch {
	case b.Stream == journal.Org:
		return nil
	case !b.Idle:
		return w.wake(b.Stream)
	}
	for range under(w.inbox, agentKey(b.Stream)) {
		return w.wake(b.Stream)
	}
	return w.runnable.Delete(agentKey(b.Stream))
}

// index writes the places of all events since the last checkpoint when there
// are enough of them.
func (w *writer) index(s *Store) error {
	if s.tails+len(w.places) < checkpoint {
		return nil
	}
	all := make(map[identity.AgentID][]uint64, len(s.tail))
	for stream, seqs := range s.tail {
		all[stream] = seqs
	}
	for _, p := range w.places {
		all[p.stream] = append(all[p.stream], p.seq)
	}
	b := w.tx.Bucket(bucketIndex)
	for stream, seqs := range all {
		if err := put(b, bucketIndex, agentSeqKey(stream, seqs[0]), kindIndex, pack(seqs)); err != nil {
			return err
		}
	}
	w.indexed = true
	return put(w.tx.Bucket(bucketPersist), bucketPersist, keyIndexed, kindNumber, numberKey(w.seq))
}

// put writes a framed payload.
func put(b *bolt.Bucket, name, key []byte, kind byte, payload []byte) error {
	return b.Put(key, frame(name, key, kind, payload))
}

func dueKey(m *journal.Message) []byte {
	return binary.BigEndian.AppendUint64(numberKey(uint64(m.Due.UnixNano())), m.Seq)
}

// pack writes growing numbers as differences.
func pack(seqs []uint64) []byte {
	var out []byte
	var last uint64
	for _, seq := range seqs {
		out = binary.AppendUvarint(out, seq-last)
		last = seq
	}
	return out
}

func unpack(data []byte) ([]uint64, error) {
	var seqs []uint64
	var last uint64
	for len(data) > 0 {
		d, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, journal.ErrDamaged
		}
		last += d
		seqs, data = append(seqs, last), data[n:]
	}
	return seqs, nil
}
