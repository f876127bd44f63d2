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
	i, ok := it.typeIndex("source", len(known), func(i int) string { return known[i].name })
	if !ok {
		return
	}
	s := Source{Name: it.name, Type: known[i].name, Pos: it.pos}
	it.fields(slices.Concat([]field{typeField()}, known[i].fields(it, &s), []field{
		{"maxResponseBytes", intField(&s.MaxResponseBytes, maxResponseBytes)},
		{"timeout", durationField(&s.Timeout, maxCallTime)},
	})...)
	it.requireFields(known[i].needs...)
	s.Fingerprint, s.Invalid = it.fingerprint(s.Database), len(it.doc.errs) > faults
	it.doc.config.Sources = append(it.doc.config.Sources, s)
}

func sqliteFields(_ docItem, s *Source) []field {
	return append(databaseFields(s), field{"database", databaseField(&s.Database)})
}

func postgresFields(_ docItem, s *Source) []field {
	return append(serverFields(s),
		field{"queryExecMode", oneOfField(&s.QueryExecMode, "cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol")},
	)
}

func mysqlFields(it docItem, s *Source) []field {
	return append(serverFields(s), field{"queryTimeout", func(v value) { // Toolbox's name
		if _, twice := it.child("timeout"); twice {
			v.fail("stands beside timeout", "leave one out")
			return
		}
		durationField(&s.Timeout, maxCallTime)(v)
	}})
}

func cloudFields(_ docItem, s *Source) []field {
	s.IPType = "public"
	return append(databaseFields(s),
		field{"project", scalarTextField(&s.Project)},
		field{"region", scalarTextField(&s.Region)},
		field{"instance", scalarTextField(&s.Instance)},
		field{"ipType", ipTypeField(&s.IPType)},
		field{"database", scalarTextField(&s.Database)},
		field{"user", scalarTextField(&s.User)},
		field{"password", passwordField(&s.Password)},
	)
}

// serverFields are those of a database on a server.
func serverFields(s *Source) []field {
	return append(databaseFields(s),
		field{"host", scalarTextField(&s.Host)},
		field{"port", portField(&s.Port)},
		field{"user", scalarTextField(&s.User)},
		field{"password", passwordField(&s.Password)},
		field{"database", scalarTextField(&s.Database)},
		field{"queryParams", textMap(&s.Params)},
	)
}

// databaseFields are those of all databases.
func databaseFields(s *Source) []field {
	return []field{
		{"readOnly", boolField(&s.ReadOnly)},
		{"maxConnections", intField(&s.MaxConns, maxDatabaseConns)},
		{"maxRows", countField(&s.MaxRows)},
	}
}

func httpFields(_ docItem, s *Source) []field {
	return []field{
		{"baseUrl", serverURL(&s.BaseURL)},
		{"headers", secretMap(&s.Headers, headerName)},
		{"queryParams", secretMap(&s.QueryParams, queryName)},
		{"readOnly", boolField(&s.ReadOnly)},
		{"disableSslVerification", sslVerification},
	}
}

// sslVerification refuses to trust whoever answers.
func sslVerification(v value) {
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

// typeIndex reads the type of a document, one of n.
func (it docItem) typeIndex(kind string, n int, name func(int) string) (int, bool) {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	at, ok := it.child("type")
	if older, stands := it.child("kind"); it.v1Entry && stands {
		if ok {
			at.fail("stands beside kind", "in Toolbox's v1 form both are the type; leave one out")
			return 0, false
		}
		at, ok = older, true
	}
	if !ok {
		it.missing("type").fail("is missing", listHint("there are ", all))
		return 0, false
	}
	word, ok := at.nonEmpty()
	if !ok {
		return 0, false
	}
	i := slices.Index(all, word)
	if i < 0 {
		at.fail(kind+" type "+quote(word)+" is unknown", cmp.Or(toolboxTypeHint(word), Suggest(word, all), listHint("there are ", all)))
	}
	return i, i >= 0
}

// toolboxFieldHint says of a field that Toolbox has, and no document here, what to do; ""
// of others.
func toolboxFieldHint(name string) string {
	if name == "useClientOAuth" {
		return "no caller's token is passed on to a source; leave it out, give the source an account of its own, and name in authRequired whose tokens a tool asks for"
	}
	return ""
}

// requireFields refuses a document without fields that it has to have.
func (it docItem) requireFields(names ...string) {
	for _, name := range names {
		if _, ok := it.child(name); !ok {
			it.missing(name).fail("is missing", "")
		}
	}
}

// scalarTextField reads a text that is not empty; a plain number or truth value is its
// own text, as with Toolbox.
func scalarTextField(to *string) func(value) {
	return func(v value) {
		switch text, ok := v.scalarText(); {
		case ok && text == "":
			v.fail("must not be empty", "")
		case ok:
			*to = text
		}
	}
}

// scalarText gives the text of any scalar but null.
func (v value) scalarText() (string, bool) {
	switch v.node.Tag {
	case "!!int", "!!float", "!!bool":
		if v.node.Kind == yaml.ScalarNode {
			return v.node.Value, true
		}
	}
	return v.text()
}

// passwordField reads a text that is not shown.
func passwordField(to *Secret) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.ScalarNode || v.isNull() {
			v.failRedacted("must be text", "as ${PASSWORD}")
			return
		}
		if text, ok := v.scalarText(); ok {
			*to = Secret(text)
		}
	}
}

// textMap reads a mapping of names to texts.
func textMap(to *map[string]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping of names to texts", "as {sslmode: require}")
			return
		}
		*to = map[string]string{}
		for key, val := range v.pairs() {
			if text, ok := val.scalarText(); ok {
				(*to)[key.node.Value] = text
			}
		}
	}
}

// portField reads a port's number, which may be written as a text.
func portField(to *int) func(value) {
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

// ipTypeField reads which address of an instance is dialled, in any case.
func ipTypeField(to *string) func(value) {
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

// databaseField reads the path of a file, relative to the document, or :memory:.
func databaseField(to *string) func(value) {
	return func(v value) {
		var name string
		scalarTextField(&name)(v)
		switch {
		case strings.HasPrefix(name, "file:"):
			v.fail("is an address of SQLite, which is not read", "write the path of the file, or :memory:; readOnly: true opens it for reading alone")
		case name != "" && name != ":memory:":
			name = v.relativePath(name)
		}
		*to = name
	}
}

// maxResponseBytes is the largest result that a document may allow.
const maxResponseBytes = 256 << 20
