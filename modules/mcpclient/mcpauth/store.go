package mcpauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxLogins is how many subjects have logins at one server.
const maxLogins = 4096

// purpose is the purpose of the keys that seal tokens.
const purpose = "mcp-login"

// Values is the store of the records. It implements modules.OwnerLister, too.
type Values interface {
	modules.OwnerStore
	modules.OwnerLister
}

// Store keeps logins: sealed in a persistent store, and opened in memory. It is safe for concurrent
// use. All Servers of a process share one Store, so that a token is refreshed once.
type Store struct {
	values Values
	keys   *keystore.Store

	refreshes singleflight.Group // by owner
	running   sync.WaitGroup     // refreshes and logins

	mu       sync.Mutex // guards what follows
	closed   bool
	locks    map[toolgroups.GroupOwner]*recordLock
	opened   map[toolgroups.GroupOwner]grant
	wanted   map[toolgroups.GroupOwner][]string // scopes that a server has asked for since the login
	retries  map[toolgroups.GroupOwner]retry    // refreshes that failed
	watchers map[*func(server string, subject Subject)]bool
	attempts attempts
}

// NewStore returns a Store that seals with keys.
func NewStore(values Values, keys *keystore.Store) *Store {
	return &Store{
		values: values, keys: keys,
		locks: map[toolgroups.GroupOwner]*recordLock{}, opened: map[toolgroups.GroupOwner]grant{}, wanted: map[toolgroups.GroupOwner][]string{}, retries: map[toolgroups.GroupOwner]retry{},
		watchers: map[*func(string, Subject)]bool{}, attempts: attempts{list: map[string]*attempt{}},
	}
}

// Close ends logins that are in progress and waits for refreshes, whose tokens would be lost.
func (s *Store) Close() {
	s.attempts.close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}

// begin counts a refresh or a login, whose end calls running.Done. It reports false after Close.
func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// recordLock is the lock of one record.
type recordLock struct {
	sync.Mutex
	users int // that hold it or wait for it
}

// lock lets only the caller change a record, until unlock is called.
func (s *Store) lock(owner toolgroups.GroupOwner) (unlock func()) {
	s.mu.Lock()
	l := s.locks[owner]
	if l == nil {
		l = new(recordLock)
		s.locks[owner] = l
	}
	l.users++
	s.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.locks, owner)
		}
	}
}

// watch calls fn after each login and logout, until stop is called. fn must not block.
func (s *Store) watch(fn func(server string, subject Subject)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[&fn] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, &fn)
	}
}

// notify calls the watchers.
func (s *Store) notify(server string, subject Subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for fn := range s.watchers {
		(*fn)(server, subject)
	}
}

// Login describes a login. It has no secret.
type Login struct {
	Server  string
	Subject Subject
	Issuer  string
	Scopes  []string  // that were granted; nil if the issuer did not say and none were requested
	At      time.Time // when the person logged in
	Ended   bool      // its token cannot be used or refreshed any more
}

// record is what is stored of a login. All but Sealed can be read without the key.
type record struct {
	Version  int       `json:"login"`
	Server   string    `json:"server"`
	Subject  Subject   `json:"subject"`
	Issuer   string    `json:"issuer"`
	Resource string    `json:"resource"`
	URL      string    `json:"url"`
	Scopes   []string  `json:"scopes,omitempty"`
	At       time.Time `json:"at"`
	Ended    bool      `json:"ended,omitempty"`
	Sealed   []byte    `json:"sealed,omitempty"` // sealedGrant
}

// recordVersion is the version of the format.
const recordVersion = 1

// context returns what the sealed part is bound to.
func (r record) context() []string {
	return []string{r.Server, string(r.Subject), r.Issuer, r.Resource, r.URL}
}

// login describes the record.
func (r record) login() Login {
	return Login{Server: r.Server, Subject: r.Subject, Issuer: r.Issuer, Scopes: r.Scopes, At: r.At, Ended: r.Ended}
}

// sealedGrant is the secret part of a login.
type sealedGrant struct {
	Token        string           `json:"token"`
	Expiry       time.Time        `json:"expiry,omitzero"`
	Refresh      string           `json:"refresh,omitempty"`
	TokenURL     string           `json:"tokenURL"` // of the issuer, when the person logged in
	AuthStyle    oauth2.AuthStyle `json:"authStyle,omitempty"`
	ClientID     string           `json:"clientID"`
	ClientSecret string           `json:"clientSecret,omitempty"` // of a client that the login has registered
}

// grant is an opened login.
type grant struct {
	record
	sealedGrant
	refreshed time.Time // in this process; zero if it was not
}

// Prefixes of the owners of records.
const (
	loginPrefix  = "mcp-login/"
	issuerPrefix = "mcp-issuer/"
)

// loginOwner returns the owner of the record of a login.
func loginOwner(server string, subject Subject) toolgroups.GroupOwner {
	digest := sha256.Sum256([]byte(subject))
	return toolgroups.GroupOwner(loginPrefix + server + "/" + hex.EncodeToString(digest[:]))
}

// read returns the login of a subject at a server. It reports false if there is none.
func (s *Store) read(ctx context.Context, server string, subject Subject) (r record, found bool, err error) {
	value, err := s.values.ReadValue(ctx, loginOwner(server, subject))
	if err != nil || value == nil {
		return r, false, err
	}
	err = json.Unmarshal(value, &r)
	return r, err == nil && r.Version == recordVersion && r.Server == server && r.Subject == subject, nil
}

// open returns the opened login of a subject. It reports false if there is no login, or if it
// cannot be opened. The key may be missing, the login may be changed, or it may belong to another
// server or subject.
func (s *Store) open(ctx context.Context, server string, subject Subject) (grant, bool, error) {
	owner := loginOwner(server, subject)
	s.mu.Lock()
	g, known := s.opened[owner]
	s.mu.Unlock()
	if known {
		return g, true, nil
	}
	r, found, err := s.read(ctx, server, subject)
	if err != nil || !found {
		return grant{}, false, err
	}
	g = grant{record: r}
	if !r.Ended {
		plain, err := s.keys.OpenText(purpose, r.Sealed, r.context()...)
		if err != nil || json.Unmarshal(plain, &g.sealedGrant) != nil {
			g.Ended = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if newer, known := s.opened[owner]; known {
		return newer, true, nil
	}
	s.opened[owner] = g
	return g, true, nil
}

// write stores a login and returns when it is on disk. The one before is replaced.
func (s *Store) write(ctx context.Context, g grant) error {
	g.record.Version, g.record.Sealed = recordVersion, nil
	if !g.Ended {
		plain, err := json.Marshal(g.sealedGrant)
		if err != nil {
			return err
		}
		if g.record.Sealed, err = s.keys.SealText(purpose, plain, g.context()...); err != nil {
			return err
		}
	}
	value, err := json.Marshal(g.record)
	if err != nil {
		return err
	}
	owner := loginOwner(g.Server, g.Subject)
	if err := s.values.WriteValue(context.WithoutCancel(ctx), owner, value); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[owner] = g
	delete(s.retries, owner)
	return nil
}

// remove removes a login.
func (s *Store) remove(ctx context.Context, server string, subject Subject) error {
	owner := loginOwner(server, subject)
	err := s.values.WriteValue(ctx, owner, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.opened, owner)
	delete(s.wanted, owner)
	delete(s.retries, owner)
	return err
}

// list returns the logins at a server, by subject. A damaged record is left out.
func (s *Store) list(ctx context.Context, server string) ([]record, error) {
	var all []record
	for owner, err := range s.values.ListOwners(ctx) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(string(owner), loginPrefix+server+"/") {
			continue
		}
		value, err := s.values.ReadValue(ctx, owner)
		if err != nil {
			return nil, err
		}
		var r record
		if json.Unmarshal(value, &r) == nil && loginOwner(r.Server, r.Subject) == owner {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(a.Subject, b.Subject) })
	return all, nil
}

// checkRoom returns an error if a server has as many logins as it may, and none of the subject.
func (s *Store) checkRoom(ctx context.Context, server string, subject Subject) error {
	all, err := s.list(ctx, server)
	if err != nil || len(all) < maxLogins || slices.ContainsFunc(all, func(r record) bool { return r.Subject == subject }) {
		return err
	}
	return errcode.New(errcode.LimitExceeded, "log in to the MCP server %q: it has %d logins, the most there can be", server, len(all))
}

// pinnedIssuer is the record of the issuer of the operator's first login at a server.
type pinnedIssuer struct {
	Issuer string `json:"issuer"`
	URL    string `json:"url"` // of the server
}

// readIssuer returns the issuer of the operator's logins at a server with an address; "" if there
// is none yet. A damaged record is an error.
func (s *Store) readIssuer(ctx context.Context, server, url string) (string, error) {
	value, err := s.values.ReadValue(ctx, toolgroups.GroupOwner(issuerPrefix+server))
	if err != nil || value == nil {
		return "", err
	}
	var p pinnedIssuer
	if err := json.Unmarshal(value, &p); err != nil || p.Issuer == "" {
		return "", errcode.New(errcode.Internal, "the recorded issuer of the MCP server %q is damaged", server)
	}
	if p.URL != url {
		return "", nil
	}
	return p.Issuer, nil
}

// writeIssuer records the issuer of the operator's logins.
func (s *Store) writeIssuer(ctx context.Context, server string, p pinnedIssuer) error {
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.values.WriteValue(ctx, toolgroups.GroupOwner(issuerPrefix+server), value)
}
