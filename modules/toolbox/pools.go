package toolbox

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// Pools are the connections of sources. Sources that are the same, by their
// Print, share them: a reload that leaves a source as it is keeps them. The
// zero Pools are ready; safe for concurrent use.
type Pools struct {
	mu   sync.Mutex // guards what follows
	open map[string]*pool
}

// Open gives how many sources have connections, or may have.
func (p *Pools) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// acquire gives the pool of a source; give it back.
func (p *Pools) acquire(c Config, log *slog.Logger) (*pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.open[c.Source.Fingerprint]; one != nil {
		one.users++
		return one, nil
	}
	one, err := newPool(c, log)
	if err != nil {
		return nil, err
	}
	one.print, one.users = c.Source.Fingerprint, 1
	if one.print == "" { // nobody can say what is the same as it
		one.print = "\x00" + strconv.Itoa(p.unnamed())
	}
	if p.open == nil {
		p.open = map[string]*pool{}
	}
	p.open[one.print] = one
	return one, nil
}

// unnamed wants mu held. It gives a number that no pool has.
func (p *Pools) unnamed() int {
	for n := 0; ; n++ {
		if p.open["\x00"+strconv.Itoa(n)] == nil {
			return n
		}
	}
}

// release takes a pool back and closes it if nobody has it any more.
func (p *Pools) release(one *pool) error {
	p.mu.Lock()
	one.users--
	last := one.users == 0
	if last {
		delete(p.open, one.print)
	}
	p.mu.Unlock()
	if !last {
		return nil
	}
	return one.close()
}

// Ping asks the databases on servers whether they are there, each once: those
// that are not are in the log before somebody calls. It returns when all have
// answered, or ctx ends.
func (p *Pools) Ping(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range p.unpinged() {
		all.Go(func() {
			_, _ = one.query(ctx, database.Query{SQL: "SELECT 1", ReadOnly: true}) // it logs by itself
			_ = p.release(one)                                                     // who else closes it says what is wrong
		})
	}
	all.Wait()
}

// unpinged takes the pools that were not looked at; give them back.
func (p *Pools) unpinged() (list []*pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.open {
		if one.remote && !one.pinged {
			one.pinged = true
			one.users++
			list = append(list, one)
		}
	}
	return list
}

// newPool makes a pool, which connects to nothing yet.
func newPool(c Config, log *slog.Logger) (*pool, error) {
	one := &pool{source: c.Source.Name, log: log, remote: c.Source.Type != config.SourceSQLite && c.Source.Type != config.SourceHTTP}
	if c.Source.Type == config.SourceHTTP {
		one.client = newClient(c)
		return one, nil
	}
	at, err := c.database()
	if err != nil {
		return nil, err
	}
	if c.Source.Type == config.SourceCloudSQLPostgres {
		if err := one.throughCloud(c, &at); err != nil {
			return nil, err
		}
	}
	one.db, err = database.Open(at)
	return one, err
}

// check refuses a source that cannot be made.
func (c Config) check() error {
	switch c.Source.Type {
	case config.SourceHTTP:
		_, err := newBase(c.Source)
		return err
	case config.SourceCloudSQLPostgres:
		if c.CloudSQL == nil && !hasConnector {
			return errcode.New(errcode.InvalidConfig, "source %q: this build has no connector for cloud-sql-postgres; build rolecall with: go build -tags cloudsql", c.Source.Name)
		}
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

// types of databases by those of sources.
var types = map[string]database.Type{
	config.SourceSQLite: database.SQLite, config.SourceMySQL: database.MySQL,
	config.SourcePostgres: database.Postgres, config.SourceCloudSQLPostgres: database.Postgres,
}

func (c Config) database() (database.Config, error) {
	s := c.Source
	kind, ok := types[s.Type]
	if !ok {
		return database.Config{}, errcode.New(errcode.InvalidConfig, "source %q: there is no type %q", s.Name, s.Type)
	}
	return database.Config{
		Type: kind, Database: s.Database, Host: s.Host, Port: s.Port, User: s.User, Password: string(s.Password),
		Params: s.Params, ReadOnly: s.ReadOnly, MaxConns: s.MaxConns, Mode: s.QueryExecMode,
	}, nil
}

// client is what requests to a service are sent with.
type client = http.Client
