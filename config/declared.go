package config

import (
	"time"

	"github.com/rolecall/rolecall/parameter"
)

// Source is a database or a service that declared tools ask.
type Source struct {
	Name string
	Type string // one of SourceSQLite and the others

	// Of databases. Database is the path of a file, the document's
	// directory before one that is relative, or the name of a database on a server.
	Database      string
	Host          string
	Port          int // 0 is not set
	User          string
	Password      Secret
	Params        map[string]string // queryParams: of the connection
	QueryExecMode string            // of postgres; "" is the driver's own

	// Of cloud-sql-postgres, beside Database, User and Password.
	Project, Region, Instance string
	IPType                    string // public, private or psc

	// Of http.
	BaseURL     string
	Headers     map[string]Secret
	QueryParams map[string]Secret // added to the address of every request

	ReadOnly         bool          // statements that write are refused
	MaxConns         int           // at once; 0 is not set
	Timeout          time.Duration // of one statement or request; 0 is not set
	MaxRows          int           // of one result; 0 is not set
	MaxResponseBytes int           // of one result; 0 is not set

	// Invalid says that something is wrong with the document, which is reported:
	// what is made of it is no source, and no fault beside that.
	Invalid bool `json:"-"`

	// Fingerprint is the same for two sources that are the same but for their
	// places. It holds a digest of the password: it is for comparing, not for
	// showing.
	Fingerprint string `json:"-"`
	Pos         Pos
}

// The types of sources.
const (
	SourceSQLite           = "sqlite"
	SourcePostgres         = "postgres"
	SourceCloudSQLPostgres = "cloud-sql-postgres"
	SourceMySQL            = "mysql"
	SourceHTTP             = "http"
)

// DeclaredTool is a tool that asks a source.
type DeclaredTool struct {
	Name        string
	Type        string // one of ToolSQLiteSQL and the others
	Source      string // of the type that the tool's needs
	Description string

	Statement  string         // of -sql; a template if there are template parameters
	Parameters *parameter.Set `json:"-"` // never nil where Load gives no error; of -execute-sql and -list-tables those that all of them have

	HTTP *HTTPRequest // of http; else nil

	AuthRequired   []string // services one of which has to vouch for the caller
	ScopesRequired []string // all of which the caller's token has

	Annotations Annotations
	Effect      string // readOnly, idempotent, mutating, or "" where the document leaves it to annotations and type

	Groups []string // tool groups it is in beside toolsets; whether an id is reserved the caller knows
	State  string   // that a call leads to; "" leaves it
	States []string // in which it can be called; empty is all

	MaxRows          int // 0 is the source's
	MaxResponseBytes int
	Timeout          time.Duration

	Fingerprint string `json:"-"` // the same for two tools that are the same but for their places and their source's document
	Pos         Pos

	cacheable bool // it is a whole document, and nothing is wrong with that by itself
}

// The types of declared tools.
const (
	ToolSQLiteSQL          = "sqlite-sql"
	ToolSQLiteExecute      = "sqlite-execute-sql"
	ToolSQLiteListTables   = "sqlite-list-tables"
	ToolPostgresSQL        = "postgres-sql"
	ToolPostgresExecute    = "postgres-execute-sql"
	ToolPostgresListTables = "postgres-list-tables"
	ToolMySQLSQL           = "mysql-sql"
	ToolMySQLExecute       = "mysql-execute-sql"
	ToolMySQLListTables    = "mysql-list-tables"
	ToolHTTP               = "http"
)

// The parameters of tools that have no document for them.
const (
	ParameterSQL          = "sql"           // of -execute-sql: a statement
	ParameterTableNames   = "table_names"   // of -list-tables: separated by commas; "" is all
	ParameterOutputFormat = "output_format" // of -list-tables: simple or detailed
)

// HTTPRequest is what a tool of type http sends to its source.
type HTTPRequest struct {
	Method  string            // in capitals
	Path    string            // below the source's; a template of PathParams
	Headers map[string]Secret // over the source's
	Body    string            // a template of BodyParams

	// Names of parameters by where their values go.
	PathParams, QueryParams, HeaderParams, BodyParams []string
}

// Annotations are the hints of MCP; nil is not said.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Toolset is a tool group of declared tools.
type Toolset struct {
	Name        string // "" is the group of all, which has a description only
	Description string
	Tools       []string // in order, each once
	Prompts     []string `json:",omitempty"` // likewise
	Pos         Pos
}

// Prompt is a text for who asks for it by name, with places for arguments. It
// is for those alone who hold a toolset that lists it.
type Prompt struct {
	Name        string
	Description string
	Arguments   *parameter.Set `json:"-"` // never nil where Load gives no error
	Messages    []PromptMessage

	Fingerprint string `json:"-"` // the same for two prompts that are the same but for their places
	Pos         Pos
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    string // user or assistant
	Content string // a template of the arguments
}

// AuthService says whose tokens vouch for a caller.
type AuthService struct {
	Name     string
	Type     string   // google or generic
	Issuer   string   // its URL, which tokens name
	Audience []string // one of which a token is for
	Scopes   []string // that every token has to have

	MCPEnabled bool // callers of MCP come with its token

	Introspection *Introspection // of tokens that are no JWTs; nil where there are none

	Fingerprint string `json:"-"` // the same for two services that are the same but for their places
	Pos         Pos
}

// Introspection says how an issuer is asked about a token (RFC 7662).
type Introspection struct {
	Endpoint  string // "" is the one of the issuer's discovery
	Method    string // GET or POST; "" is POST
	Parameter string // that carries the token; "" is token
	Always    bool   // JWTs are asked about too
}

// The types of auth services.
const (
	AuthGoogle  = "google"
	AuthGeneric = "generic"
)

// googleIssuer is whose tokens a service of type google takes.
const googleIssuer = "https://accounts.google.com"
