package toolbox

import (
	"context"
	"log/slog"
	"strconv"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// Pools holds the connections of all sources. Sources with the same Fingerprint share
// a pool, so an unchanged source keeps its connections across a reload. The zero
// Pools is ready to use. It is safe for concurrent use.
type Pools struct {
	mu   sync.Mutex       // guards what follows, and refs and pinged of each pool
	open map[string]*pool // by fingerprint
}

// CountOpen returns the number of pools in use.
func (p *Pools) CountOpen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// acquire returns the pool of a source, which the caller has to release.
func (p *Pools) acquire(c Config, log *slog.Logger) (*pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.open[c.Source.Fingerprint]; one != nil {
		one.refs++
		return one, nil
	}
	one, err := newPool(c, log)
	if err != nil {
		return nil, err
	}
	one.fingerprint, one.refs = c.Source.Fingerprint, 1
	if one.fingerprint == "" { // never shared
		one.fingerprint = "\x00" + strconv.Itoa(p.unusedKey())
	}
	if p.open == nil {
		p.open = map[string]*pool{}
	}
	p.open[one.fingerprint] = one
	return one, nil
}

// unusedKey returns a number that is not the key of a pool. It must be called with mu
// held.
func (p *Pools) unusedKey() int {
	for n := 0; ; n++ {
		if p.open["\x00"+strconv.Itoa(n)] == nil {
			return n
		}
	}
}

// release ends one use of a pool, and closes it after the last one.
func (p *Pools) release(one *pool) error {
	p.mu.Lock()
	one.refs--
	last := one.refs == 0
	if last {
		delete(p.open, one.fingerprint)
	}
	p.mu.Unlock()
	if !last {
		return nil
	}
	return one.close()
}

// PingServers connects to the databases on servers that it has not pinged before. So the log
// names unreachable databases before a call. It returns when all have answered or ctx ends.
func (p *Pools) PingServers(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range p.unpinged() {
		all.Go(func() {
			_, _ = one.query(ctx, database.Query{SQL: "SELECT 1", ReadOnly: !one.noReadOnly}) // logs by itself
			_ = p.release(one)                                                                // a failed close matters to the module only
		})
	}
	all.Wait()
}

// unpinged acquires the pools that PingServers has not taken yet.
func (p *Pools) unpinged() (list []*pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.open {
		if one.remote && !one.pinged {
			one.pinged = true
			one.refs++
			list = append(list, one)
		}
	}
	return list
}

// newPool returns a pool that has not connected yet.
func newPool(c Config, log *slog.Logger) (*pool, error) {
	one := &pool{source: c.Source.Name, log: log, noReadOnly: c.Source.NoReadOnlyTransactions, remote: c.Source.Type != toolboxfile.SourceSQLite && c.Source.Type != toolboxfile.SourceHTTP}
	if c.Source.Type == toolboxfile.SourceHTTP {
		one.client, one.slots = newClient(c), fair.NewSemaphore(maxConns(c))
		return one, nil
	}
	at, err := c.database()
	if err != nil {
		return nil, err
	}
	if reason := MissingConnector(c.Source); reason != "" && c.CloudSQL == nil {
		one.missing = reason
		return one, nil
	}
	if c.Source.Type == toolboxfile.SourceCloudSQLPostgres {
		if err := one.useCloudSQL(c, &at); err != nil {
			return nil, err
		}
	}
	one.db, err = database.Open(at)
	return one, err
}

// check returns an error if the source cannot work as configured. It does not connect.
func (c Config) check() error {
	switch c.Source.Type {
	case toolboxfile.SourceHTTP:
		_, err := newBase(c.Source)
		return err
	}
	at, err := c.database()
	if err != nil {
		return err
	}
	trial, err := database.Open(at)
	if err != nil {
		return errcode.Wrap(errcode.InvalidConfig, err, "source %q: %s", c.Source.Name, errcode.Message(err))
	}
	return trial.Close()
}

// databaseTypes maps types of sources to types of databases.
var databaseTypes = map[string]database.Type{
	toolboxfile.SourceSQLite: database.SQLite, toolboxfile.SourceMySQL: database.MySQL,
	toolboxfile.SourcePostgres: database.Postgres, toolboxfile.SourceCloudSQLPostgres: database.Postgres,
}

// database returns the configuration of the database of a source.
func (c Config) database() (database.Config, error) {
	s := c.Source
	kind, ok := databaseTypes[s.Type]
	if !ok {
		return database.Config{}, errcode.New(errcode.InvalidConfig, "source %q: unknown type %q", s.Name, s.Type)
	}
	return database.Config{
		Type: kind, Database: s.Database, Host: s.Host, Port: s.Port, User: s.User, Password: string(s.Password),
		Params: s.Params, ReadOnly: s.ReadOnly, MaxConns: s.MaxConns, Mode: s.QueryExecMode,
	}, nil
}
