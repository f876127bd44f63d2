package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
)

// SessionStore keeps the sessions of configured tokens, so that a browser stays signed in when the
// process starts again. It holds no id and no token, only their digests.
type SessionStore interface {
	// LoadSessions returns the data that SaveSessions has saved last. It returns nil if nothing was
	// saved.
	LoadSessions() ([]byte, error)
	// SaveSessions replaces what is saved.
	SaveSessions([]byte) error
}

// saveUses is how often the last use of sessions is saved.
const saveUses = time.Minute

// savedSession is a storedSession of a configured token, in JSON. Digests are in hexadecimal.
type savedSession struct {
	ID     string            `json:"id"`
	Token  string            `json:"token"`
	User   identity.UserName `json:"user"`
	Began  time.Time         `json:"began"`
	Used   time.Time         `json:"used"`
	Number uint64            `json:"number"`
}

// load reads the saved sessions. What cannot be read is no session. It must be called before the
// table is used.
func (s *sessionTable) load() error {
	text, err := s.store.LoadSessions()
	if err != nil || len(text) == 0 {
		return err
	}
	var list []savedSession
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	s.sessions = map[[sha256.Size]byte]storedSession{}
	for _, one := range list[:min(len(list), maxSessions)] {
		id, known := parseDigest(one.ID)
		token, given := parseDigest(one.Token)
		if known && given {
			s.sessions[id] = storedSession{credential: credential{digest: token}, user: one.User, began: one.Began, used: one.Used, number: one.Number}
			s.count = max(s.count, one.Number)
		}
	}
	return nil
}

func parseDigest(text string) (digest [sha256.Size]byte, ok bool) {
	n, err := hex.Decode(digest[:], []byte(text)[:min(len(text), 2*sha256.Size)])
	return digest, err == nil && n == sha256.Size && len(text) == 2*sha256.Size
}

// save saves the sessions of configured tokens. The start-up token ends with the process, and a
// user of an issuer signs in again there. A failure costs a sign-in after a restart, no more.
func (s *sessionTable) save(now time.Time) {
	if s.store == nil {
		return
	}
	s.saveMu.Lock()
	defer s.saveMu.Unlock()
	text, _ := json.Marshal(s.savedSessions(now)) // texts and times always marshal
	_ = s.store.SaveSessions(text)
}

// savedSessions returns the sessions to save and notes that they are saved.
func (s *sessionTable) savedSessions(now time.Time) []savedSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = now
	list := []savedSession{}
	for id, one := range s.sessions {
		if one.issuer == "" && !one.startup && !one.ended(now) {
			list = append(list, savedSession{hex.EncodeToString(id[:]), hex.EncodeToString(one.digest[:]), one.user, one.began, one.used, one.number})
		}
	}
	return list
}
