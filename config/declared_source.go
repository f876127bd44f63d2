package config

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// sourceType is a type of source.
type sourceType struct {
	name   string
	needs  []string // fields that have to be there
	fields func(docItem, *Source) []field
}

// sourceTypes is the one place that lists what a source can be.
func sourceTypes() []sourceType {
	return []sourceType{
		{SourceSQLite, []string{"database"}, sqliteFields},
		{SourcePostgres, []string{"host", "port", "user", "database"}, postgresFields},
		{SourceCloudSQLPostgres, []string{"project", "region", "instance", "database"}, cloudFields},
		{SourceMySQL, []string{"host", "port"}, mysqlFields},
		{SourceHTTP, []string{"baseUrl"}, httpFields},
	}
}

// maxDatabaseConns is the most connections that a document may ask for.
const maxDatabaseConns = 10_000

func readSource(it docItem) {
	faults := len(it.doc.errs)
	it.declare()
	known := sourceTypes()
	i, ok := it.typed("source", len(known), func(i int) string { return known[i].name })
	if !ok {
		return
	}
	s := Source{Name: it.name, Type: known[i].name, Pos: it.pos}
	it.fields(slices.Concat([]field{kindOf()}, known[i].fields(it, &s), []field{
		{"maxResponseBytes", intField(&s.MaxResponseBytes, maxResponseBytes)},
		{"timeout", duration(&s.Timeout, maxCallTime)},
	})...)
	it.need(known[i].needs...)
	s.Fingerprint, s.Invalid = it.fingerprint(s.Database), len(it.doc.errs) > faults
	it.doc.config.Sources = append(it.doc.config.Sources, s)
}

func sqliteFields(_ docItem, s *Source) []field {
	return append(databaseFields(s), field{"database", databaseFile(&s.Database)})
}

func postgresFields(_ docItem, s *Source) []field {
	return append(serverFields(s),
		field{"queryExecMode", oneOf(&s.QueryExecMode, "cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol")},
	)
}

func mysqlFields(it docItem, s *Source) []field {
	return append(serverFields(s), field{"queryTimeout", func(v value) { // Toolbox's name
		if _, twice := it.child("timeout"); twice {
			v.fail("stands beside timeout", "leave one out")
			return
		}
		duration(&s.Timeout, maxCallTime)(v)
	}})
}

func cloudFields(_ docItem, s *Source) []field {
	s.IPType = "public"
	return append(databaseFields(s),
		field{"project", word(&s.Project)},
		field{"region", word(&s.Region)},
		field{"instance", word(&s.Instance)},
		field{"ipType", ipType(&s.IPType)},
		field{"database", word(&s.Database)},
		field{"user", word(&s.User)},
		field{"password", password(&s.Password)},
	)
}

// serverFields are those of a database on a server.
func serverFields(s *Source) []field {
	return append(databaseFields(s),
		field{"host", word(&s.Host)},
		field{"port", port(&s.Port)},
		field{"user", word(&s.User)},
		field{"password", password(&s.Password)},
		field{"database", word(&s.Database)},
		field{"queryParams", words(&s.Params)},
	)
}

// databaseFields are those of all databases.
func databaseFields(s *Source) []field {
	return []field{
		{"readOnly", boolField(&s.ReadOnly)},
		{"maxConnections", intField(&s.MaxConns, maxDatabaseConns)},
		{"maxRows", count(&s.MaxRows)},
	}
}

func httpFields(_ docItem, s *Source) []field {
	return []field{
		{"baseUrl", endpoint(&s.BaseURL)},
		{"headers", secretMap(&s.Headers, headerName)},
		{"queryParams", secretMap(&s.QueryParams, queryName)},
		{"readOnly", boolField(&s.ReadOnly)},
		{"disableSslVerification", verified},
	}
}

// verified refuses to trust whoever answers.
func verified(v value) {
	var off bool
	if boolField(&off)(v); off {
		v.fail("is not supported: whoever stands between could read and change what is sent", "put the certificate of the server's authority into the system's, or name its file in SSL_CERT_FILE")
	}
}

func queryName(name string) (string, string) {
	if name == "" {
		return "", "is no name of a query parameter"
	}
	return name, ""
}

// typed reads the type of a document, one of n.
func (it docItem) typed(kind string, n int, name func(int) string) (int, bool) {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	at, ok := it.child("type")
	if older, stands := it.child("kind"); it.entry && stands {
		if ok {
			at.fail("stands beside kind", "in Toolbox's v1 form both are the type; leave one out")
			return 0, false
		}
		at, ok = older, true
	}
	if !ok {
		it.at("type").fail("is missing", listing("there are ", all))
		return 0, false
	}
	word, ok := at.nonEmpty()
	if !ok {
		return 0, false
	}
	i := slices.Index(all, word)
	if i < 0 {
		at.fail(kind+" type "+quote(word)+" is unknown", cmp.Or(unsupportedType(word), Suggest(word, all), listing("there are ", all)))
	}
	return i, i >= 0
}

// foreign says of a field that Toolbox has, and no document here, what to do; ""
// of others.
func foreign(name string) string {
	if name == "useClientOAuth" {
		return "no caller's token is passed on to a source; leave it out, give the source an account of its own, and name in authRequired whose tokens a tool asks for"
	}
	return ""
}

// need refuses a document without fields that it has to have.
func (it docItem) need(names ...string) {
	for _, name := range names {
		if _, ok := it.child(name); !ok {
			it.at(name).fail("is missing", "")
		}
	}
}

// word reads a text that is not empty; a plain number or truth value is its
// own text, as with Toolbox.
func word(to *string) func(value) {
	return func(v value) {
		switch text, ok := v.word(); {
		case ok && text == "":
			v.fail("must not be empty", "")
		case ok:
			*to = text
		}
	}
}

// word gives the text of any scalar but null.
func (v value) word() (string, bool) {
	switch v.node.Tag {
	case "!!int", "!!float", "!!bool":
		if v.node.Kind == yaml.ScalarNode {
			return v.node.Value, true
		}
	}
	return v.text()
}

// password reads a text that is not shown.
func password(to *Secret) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.ScalarNode || v.isNull() {
			v.failRedacted("must be text", "as ${PASSWORD}")
			return
		}
		if text, ok := v.word(); ok {
			*to = Secret(text)
		}
	}
}

// words reads a mapping of names to texts.
func words(to *map[string]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping of names to texts", "as {sslmode: require}")
			return
		}
		*to = map[string]string{}
		for key, val := range v.pairs() {
			if text, ok := val.word(); ok {
				(*to)[key.node.Value] = text
			}
		}
	}
}

// port reads a port's number, which may be written as a text.
func port(to *int) func(value) {
	return func(v value) {
		if v.node.Tag == "!!str" && strings.Trim(v.node.Value, "0123456789") == "" {
			plain := *v.node
			plain.Tag, v.node = "!!int", &plain
		}
		if n, ok := v.integer(1, 65535, "a port from 1 to 65535"); ok {
			*to = int(n)
		}
	}
}

// ipType reads which address of an instance is dialled, in any case.
func ipType(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		switch text = strings.ToLower(text); text {
		case "public", "private", "psc":
			*to = text
		default:
			v.failType("public, private or psc", "")
		}
	}
}

// databaseFile reads the path of a file, relative to the document, or :memory:.
func databaseFile(to *string) func(value) {
	return func(v value) {
		var name string
		word(&name)(v)
		switch {
		case strings.HasPrefix(name, "file:"):
			v.fail("is an address of SQLite, which is not read", "write the path of the file, or :memory:; readOnly: true opens it for reading alone")
		case name != "" && name != ":memory:":
			name = v.beside(name)
		}
		*to = name
	}
}

// maxResponseBytes is the largest result that a document may allow.
const maxResponseBytes = 256 << 20
