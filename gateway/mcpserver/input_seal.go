package mcpserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// roundState is what a client without a session brings back with its answers. It is sealed: a
// client can neither read nor change it. It opens only for the call for which it was made.
type roundState struct {
	Nonce   string                 `json:"n"`
	Expires time.Time              `json:"e"`
	Round   int                    `json:"r"` // how often the call has ended with questions
	Call    identity.CallID        `json:"c"`
	Given   map[string]givenAnswer `json:"g,omitempty"` // answers of earlier rounds, by name
	Open    map[string]string      `json:"o"`           // digests of the open requests, by name
	Memo    json.RawMessage        `json:"m,omitempty"`
}

// givenAnswer is a response that the client has given, and the digest of its request.
type givenAnswer struct {
	Digest   string             `json:"d"`
	Response tool.InputResponse `json:"r"`
}

// digestOf returns the digest of a request. An answer counts only for the same request.
func digestOf(r tool.InputRequest) string {
	sum := sha256.Sum256(marshal(r))
	return base64.RawStdEncoding.EncodeToString(sum[:16])
}

// maxState is the largest sealed state in bytes. Messages without their arguments are limited too.
const maxState = 40 << 10

// maxUsedStates limits the states of one sender, and of all, that are remembered because they were
// used.
const (
	maxUsedStates       = 1 << 14
	maxUsedStatesSender = 1 << 10
)

// sealer seals states. Its key is random and lives as long as the process, like the list of used
// states. After a restart no state opens. It is safe for concurrent use.
type sealer struct {
	aead cipher.AEAD
	now  func() time.Time

	mu     sync.Mutex
	used   map[string]usedState // by nonce
	counts map[string]int       // of used, by sender
}

// usedState is a state that was used.
type usedState struct {
	sender  string
	expires time.Time
}

// newSealer returns a sealer with a new key.
func newSealer() (*sealer, error) {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead: aead, now: time.Now, used: map[string]usedState{}, counts: map[string]int{}}, err
}

// binding returns what a state is bound to: the sender, the caller, the role, the tool and its
// arguments. Each part has its length before it, so that no two calls have the same binding.
func binding(sc *clientScope, c toolCall) []byte {
	args := sha256.Sum256(c.args)
	secure := sha256.Sum256(c.secure)
	var b []byte
	for _, part := range []string{
		sc.sender.Key(), sc.caller.Key(), string(sc.caller.Role), sc.caller.Within, string(sc.endpoint.toolset), c.name, string(args[:]), string(secure[:]),
	} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// seal returns a state as text.
//
// Errors: InputUnavailable if it is too large.
func (s *sealer) seal(state roundState, bound []byte) (string, error) {
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	sealed := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, marshal(state), bound))
	if len(sealed) > maxState {
		return "", errcode.New(errcode.InputUnavailable, "the answers of this call take more than %d KiB; only a client with a session can send them", maxState>>10)
	}
	return sealed, nil
}

// open returns the state in a text. All invalid states have the same error.
//
// Errors: InvalidArguments.
func (s *sealer) open(text string, bound []byte) (state roundState, err error) {
	invalid := errcode.New(errcode.InvalidArguments, "the requestState is not valid for this call, or is too old: call the tool again without it")
	if len(text) > maxState || strings.ContainsAny(text, "\r\n") { // the decoder would skip line ends
		return state, invalid
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) < s.aead.NonceSize() {
		return state, invalid
	}
	plain, err := s.aead.Open(nil, data[:s.aead.NonceSize()], data[s.aead.NonceSize():], bound)
	if err != nil || json.Unmarshal(plain, &state) != nil || !s.now().Before(state.Expires) {
		return roundState{}, invalid
	}
	return state, nil
}

// markUsed marks a state as used. It fails if it was used before.
//
// Errors: InvalidArguments; RateLimited if the sender has used too many in a short time.
func (s *sealer) markUsed(state roundState, sender string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.used[state.Nonce]; again {
		return errcode.New(errcode.InvalidArguments, "the requestState was used before: call the tool again without it")
	}
	if len(s.used) >= maxUsedStates || s.counts[sender] >= maxUsedStatesSender {
		s.forgetExpired()
	}
	if len(s.used) >= maxUsedStates || s.counts[sender] >= maxUsedStatesSender {
		return errcode.New(errcode.RateLimited, "too many calls were continued with answers; try again in some minutes")
	}
	s.used[state.Nonce] = usedState{sender, state.Expires}
	s.counts[sender]++
	return nil
}

// forgetExpired forgets the states that do not open any more. It must be called with mu held.
func (s *sealer) forgetExpired() {
	for nonce, u := range s.used {
		if s.now().Before(u.expires) {
			continue
		}
		delete(s.used, nonce)
		if s.counts[u.sender]--; s.counts[u.sender] == 0 {
			delete(s.counts, u.sender)
		}
	}
}
