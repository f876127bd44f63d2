package toolboxfile

import "github.com/rolecall/rolecall/modules/toolbox/parameter"

// postgresCatalog returns the types of tools that read the catalogs of PostgreSQL.
func postgresCatalog() []catalogTool {
	return append(append(postgresActivity(), postgresObjects()...), postgresServer()...)
}

// postgresActivity returns the types of tools about what the server does now.
func postgresActivity() []catalogTool {
	return []catalogTool{{
		name:        "postgres-list-active-queries",
		description: "List the queries that run now, the longest-running first, with their process, user, database, application, client, waits, start times, duration and text.",
		parameters: []parameter.Spec{
			textParam("min_duration", "1 minute", "Only queries that run at least this long, such as 1 minute or 10 seconds."),
			filterParam("exclude_application_names", "Names of applications whose queries are left out, separated by commas."),
			limitParam(50),
		},
		statement: `SELECT pid, usename AS "user", datname, application_name, client_addr::text AS client_addr, state, wait_event_type, wait_event,
	backend_start, xact_start, query_start, (clock_timestamp() - query_start)::text AS query_duration, query
FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid() AND clock_timestamp() - query_start >= $1::text::interval
	AND application_name <> ALL (SELECT trim(name) FROM unnest(string_to_array($2::text, ',')) AS name)
ORDER BY query_start LIMIT $3::bigint`,
	}, {
		name:        "postgres-long-running-transactions",
		description: "List the transactions that are open longer than a time limit, the oldest first, with their process, database, user, application, client, state, ages, waits and query.",
		parameters: []parameter.Spec{
			textParam("min_duration", "5 minutes", "Only transactions that are open at least this long, such as 15 minutes or 30 seconds."),
			limitParam(20),
		},
		statement: `SELECT pid, datname, usename, application_name AS appname, client_addr::text AS client_addr, state,
	(clock_timestamp() - backend_start)::text AS conn_age, (clock_timestamp() - xact_start)::text AS xact_age,
	(clock_timestamp() - query_start)::text AS query_age, (clock_timestamp() - state_change)::text AS last_activity_age,
	wait_event_type, wait_event, query
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND clock_timestamp() - xact_start >= $1::text::interval
ORDER BY xact_start LIMIT $2::bigint`,
	}, {
		name:        "postgres-list-locks",
		description: "List the locks that each process holds or waits for, with its user, its query, its transactions, and for each lock whether it is granted, its relation and its mode.",
		statement: `SELECT a.pid, a.usename, a.query, string_agg(l.transactionid::text, ',' ORDER BY l.transactionid::text) AS trxid,
	string_agg(l.granted || ',' || coalesce(l.relation::regclass::text, '-') || ',' || l.mode, '||' ORDER BY l.relation, l.mode) AS locks
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE a.pid <> pg_backend_pid()
GROUP BY a.pid, a.usename, a.query
ORDER BY a.pid`,
	}, {
		name:        "postgres-replication-stats",
		description: "List the replicas with their process, user, application, client, state, the oldest transaction that they need, and how many bytes they are behind: sent, written, flushed, replayed and in total.",
		statement: `WITH position AS (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END AS lsn)
SELECT pid, usename, application_name, backend_xmin, client_addr::text AS client_addr, state, sync_state,
	pg_wal_lsn_diff(lsn, sent_lsn) AS sent_lag, pg_wal_lsn_diff(sent_lsn, write_lsn) AS write_lag,
	pg_wal_lsn_diff(write_lsn, flush_lsn) AS flush_lag, pg_wal_lsn_diff(flush_lsn, replay_lsn) AS replay_lag,
	pg_wal_lsn_diff(lsn, replay_lsn) AS total_lag
FROM pg_stat_replication, position
ORDER BY pid`,
	}, {
		name:        "postgres-list-query-stats",
		description: "List the statements that took most time in total, with their database, number of executions, times in milliseconds, rows and blocks. Needs the extension pg_stat_statements.",
		parameters:  []parameter.Spec{filterParam("database_name", "A part of the name of a database."), limitParam(50)},
		statement: `SELECT d.datname, s.query, s.calls, s.total_exec_time, s.min_exec_time, s.max_exec_time, s.mean_exec_time,
	s.rows, s.shared_blks_hit, s.shared_blks_read
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname LIKE '%' || $1::text || '%'
ORDER BY s.total_exec_time DESC LIMIT $2::bigint`,
	}, {
		name:        "postgres-list-database-stats",
		description: "List statistics of each database: whether it accepts connections, owner, tablespace, share of blocks from the cache, transactions, rows, temporary files, conflicts, deadlocks, connections and size in bytes.",
		parameters: []parameter.Spec{
			filterParam("database_name", "A part of the name of a database."), flagParam("include_templates", "Whether templates are listed too."),
			filterParam("database_owner", "A part of the name of the owner."), filterParam("default_tablespace", "A part of the name of the tablespace."),
			choiceParam("order_by", "The order: size, commit, or empty for the name.", "size", "commit"), limitParam(10),
		},
		statement: `SELECT * FROM (
	SELECT d.datname AS database_name, d.datallowconn AS is_connectable, pg_get_userbyid(d.datdba) AS database_owner, t.spcname AS default_tablespace,
		coalesce(round(s.blks_hit * 100.0 / nullif(s.blks_hit + s.blks_read, 0), 2), 0) AS cache_hit_ratio_percent,
		s.blks_read AS blocks_read_from_disk, s.blks_hit AS blocks_hit_in_cache, s.xact_commit, s.xact_rollback,
		coalesce(round(s.xact_rollback * 100.0 / nullif(s.xact_commit + s.xact_rollback, 0), 2), 0) AS rollback_ratio_percent,
		s.tup_returned AS rows_returned_by_queries, s.tup_fetched AS rows_fetched_by_scans, s.tup_inserted, s.tup_updated, s.tup_deleted,
		s.temp_files, s.temp_bytes AS temp_size_bytes, s.conflicts, s.deadlocks, s.numbackends AS active_connections,
		s.stats_reset AS statistics_last_reset,
		CASE WHEN has_database_privilege(d.oid, 'CONNECT') THEN pg_database_size(d.oid) END AS database_size_bytes
	FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace LEFT JOIN pg_stat_database s ON s.datid = d.oid
	WHERE d.datname LIKE '%' || $1::text || '%' AND ($2::boolean OR NOT d.datistemplate)
		AND pg_get_userbyid(d.datdba) LIKE '%' || $3::text || '%' AND t.spcname LIKE '%' || $4::text || '%'
) AS stats
ORDER BY CASE $5::text WHEN 'size' THEN database_size_bytes WHEN 'commit' THEN xact_commit END DESC NULLS LAST, database_name LIMIT $6::bigint`,
	}}
}

// postgresObjects returns the types of tools about what a database contains.
func postgresObjects() []catalogTool {
	schema := filterParam("schema_name", "A part of the name of a schema.")
	table := filterParam("table_name", "A part of the name of a table.")
	return []catalogTool{{
		name:        "postgres-list-views",
		description: "List the views with their schema, owner and definition.",
		parameters:  []parameter.Spec{filterParam("view_name", "A part of the name of a view."), schema, limitParam(50)},
		statement: `SELECT schemaname AS schema_name, viewname AS view_name, viewowner AS owner_name, definition
FROM pg_views
WHERE schemaname <> 'information_schema' AND schemaname !~ '^pg_'
	AND viewname LIKE '%' || $1::text || '%' AND schemaname LIKE '%' || $2::text || '%'
ORDER BY schemaname, viewname LIMIT $3::bigint`,
	}, {
		name:        "postgres-list-schemas",
		description: "List the schemas with their owner, the privileges of each role on them, and their numbers of tables, views and functions.",
		parameters:  []parameter.Spec{schema, filterParam("owner", "A part of the name of the owner."), limitParam(10)},
		statement: `SELECT n.nspname AS schema_name, pg_get_userbyid(n.nspowner) AS owner,
	coalesce((SELECT json_object_agg(name, privileges) FROM (
		SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(g.grantee) END AS name, json_agg(g.privilege_type ORDER BY g.privilege_type) AS privileges
		FROM aclexplode(n.nspacl) g GROUP BY g.grantee ORDER BY 1) AS each), '{}'::json) AS grants,
	(SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p')) AS tables,
	(SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('v', 'm')) AS views,
	(SELECT count(*) FROM pg_proc p WHERE p.pronamespace = n.oid) AS functions
FROM pg_namespace n
WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
	AND n.nspname LIKE '%' || $1::text || '%' AND pg_get_userbyid(n.nspowner) LIKE '%' || $2::text || '%'
ORDER BY n.nspname LIMIT $3::bigint`,
	}, {
		name:        "postgres-list-triggers",
		description: "List the triggers with their schema and table, whether they are enabled, their timing, events and level, the function that they call, and their definition.",
		parameters:  []parameter.Spec{filterParam("trigger_name", "A part of the name of a trigger."), schema, table, limitParam(50)},
		statement: `SELECT t.tgname AS trigger_name, n.nspname AS schema_name, c.relname AS table_name,
	CASE t.tgenabled WHEN 'O' THEN 'ENABLED' WHEN 'D' THEN 'DISABLED' WHEN 'R' THEN 'REPLICA' ELSE 'ALWAYS' END AS status,
	CASE WHEN t.tgtype & 2 > 0 THEN 'BEFORE' WHEN t.tgtype & 64 > 0 THEN 'INSTEAD OF' ELSE 'AFTER' END AS timing,
	concat_ws(', ', CASE WHEN t.tgtype & 4 > 0 THEN 'INSERT' END, CASE WHEN t.tgtype & 16 > 0 THEN 'UPDATE' END,
		CASE WHEN t.tgtype & 8 > 0 THEN 'DELETE' END, CASE WHEN t.tgtype & 32 > 0 THEN 'TRUNCATE' END) AS events,
	CASE WHEN t.tgtype & 1 > 0 THEN 'ROW' ELSE 'STATEMENT' END AS activation_level,
	p.proname AS function_name, pg_get_triggerdef(t.oid) AS definition
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND t.tgname LIKE '%' || $1::text || '%' AND n.nspname LIKE '%' || $2::text || '%' AND c.relname LIKE '%' || $3::text || '%'
ORDER BY n.nspname, c.relname, t.tgname LIMIT $4::bigint`,
	}, {
		name:        "postgres-list-indexes",
		description: "List the indexes with their schema and table, method, whether they are unique or of a primary key, their definition, size in bytes and use.",
		parameters: []parameter.Spec{
			schema, table, filterParam("index_name", "A part of the name of an index."), flagParam("only_unused", "Whether only indexes that no query has used are listed."), limitParam(50),
		},
		statement: `SELECT s.schemaname AS schema_name, s.relname AS table_name, s.indexrelname AS index_name, m.amname AS index_type,
	i.indisunique AS is_unique, i.indisprimary AS is_primary, pg_get_indexdef(i.indexrelid) AS index_definition,
	pg_relation_size(i.indexrelid) AS index_size_bytes, s.idx_scan AS index_scans, s.idx_tup_read AS tuples_read, s.idx_tup_fetch AS tuples_fetched,
	s.idx_scan > 0 AS is_used
FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE s.schemaname LIKE '%' || $1::text || '%' AND s.relname LIKE '%' || $2::text || '%' AND s.indexrelname LIKE '%' || $3::text || '%'
	AND (NOT $4::boolean OR s.idx_scan = 0)
ORDER BY s.schemaname, s.relname, s.indexrelname LIMIT $5::bigint`,
	}, {
		name:        "postgres-list-sequences",
		description: "List the sequences with their schema, owner, type, first, smallest and largest value, step, and the last value.",
		parameters:  []parameter.Spec{filterParam("sequence_name", "A part of the name of a sequence."), schema, limitParam(50)},
		statement: `SELECT sequencename AS sequence_name, schemaname AS schema_name, sequenceowner AS sequence_owner, data_type::text AS data_type,
	start_value, min_value, max_value, increment_by, last_value
FROM pg_sequences
WHERE sequencename LIKE '%' || $1::text || '%' AND schemaname LIKE '%' || $2::text || '%'
ORDER BY schemaname, sequencename LIMIT $3::bigint`,
	}, {
		name:        "postgres-list-stored-procedure",
		description: "List the stored procedures with their schema, owner, language, definition and comment.",
		parameters: []parameter.Spec{
			optionalParam("role_name", "The owner of the procedures."), optionalParam("schema_name", "The schema of the procedures."), limitParam(20),
		},
		statement: `SELECT n.nspname AS schema_name, p.proname AS name, pg_get_userbyid(p.proowner) AS owner, l.lanname AS language,
	pg_get_functiondef(p.oid) AS definition, obj_description(p.oid, 'pg_proc') AS description
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
WHERE p.prokind = 'p' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
	AND ($1::text IS NULL OR pg_get_userbyid(p.proowner) = $1::text) AND ($2::text IS NULL OR n.nspname = $2::text)
ORDER BY n.nspname, p.proname, p.oid LIMIT $3::bigint`,
	}, {
		name:        "postgres-list-table-stats",
		description: "List statistics of tables: size in bytes, scans, share of index scans, live and dead rows, changed rows, and when the table was vacuumed and analyzed. A low share of index scans can mean that an index is missing.",
		parameters: []parameter.Spec{
			textParam("schema_name", "public", "A part of the name of a schema."), optionalParam("table_name", "A part of the name of a table."),
			optionalParam("owner", "A part of the name of the owner."),
			func() parameter.Spec {
				p := choiceParam("sort_by", "The order: size, dead_rows, seq_scan or idx_scan. Without it seq_scan.", "size", "dead_rows", "seq_scan", "idx_scan")
				p.Default, p.Required = nil, new(bool)
				return p
			}(),
			limitParam(50),
		},
		statement: `SELECT * FROM (
	SELECT s.schemaname AS schema_name, s.relname AS table_name, pg_get_userbyid(c.relowner) AS owner, pg_total_relation_size(s.relid) AS total_size_bytes,
		coalesce(s.seq_scan, 0) AS seq_scan, coalesce(s.idx_scan, 0) AS idx_scan,
		coalesce(round(s.idx_scan * 100.0 / nullif(s.seq_scan + s.idx_scan, 0), 2), 0) AS idx_scan_ratio_percent,
		s.n_live_tup AS live_rows, s.n_dead_tup AS dead_rows,
		coalesce(round(s.n_dead_tup * 100.0 / nullif(s.n_live_tup + s.n_dead_tup, 0), 2), 0) AS dead_row_ratio_percent,
		s.n_tup_ins, s.n_tup_upd, s.n_tup_del, s.last_vacuum, s.last_autovacuum, s.last_autoanalyze
	FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
	WHERE s.schemaname LIKE '%' || $1::text || '%' AND s.relname LIKE '%' || coalesce($2::text, '') || '%'
		AND pg_get_userbyid(c.relowner) LIKE '%' || coalesce($3::text, '') || '%'
) AS stats
ORDER BY CASE $4::text WHEN 'size' THEN total_size_bytes WHEN 'dead_rows' THEN dead_rows WHEN 'idx_scan' THEN idx_scan ELSE seq_scan END DESC,
	schema_name, table_name LIMIT $5::bigint`,
	}, {
		name:        "postgres-get-column-cardinality",
		description: "Estimate how many different values the columns of a table have, the most first, from the statistics of the last ANALYZE. Without column_name all columns are listed.",
		parameters: []parameter.Spec{
			textParam("schema_name", "public", "The schema of the table."), requiredParam("table_name", "The name of the table."), optionalParam("column_name", "The name of a column."),
		},
		statement: `SELECT s.attname AS column_name,
	(CASE WHEN s.n_distinct >= 0 THEN s.n_distinct ELSE -s.n_distinct * greatest(c.reltuples, 0) END)::bigint AS estimated_cardinality
FROM pg_stats s JOIN pg_namespace n ON n.nspname = s.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = s.tablename
WHERE s.schemaname = $1::text AND s.tablename = $2::text AND ($3::text IS NULL OR s.attname = $3::text)
ORDER BY 2 DESC, 1`,
	}, {
		name:        "postgres-list-publication-tables",
		description: "List the tables of each publication, with what it publishes and its owner.",
		parameters: []parameter.Spec{
			filterParam("table_names", "Names of tables, separated by commas."), filterParam("publication_names", "Names of publications, separated by commas."),
			filterParam("schema_names", "Names of schemas, separated by commas."), limitParam(50),
		},
		statement: `SELECT t.pubname AS publication_name, t.schemaname AS schema_name, t.tablename AS table_name, p.puballtables AS publishes_all_tables,
	p.pubinsert AS publishes_inserts, p.pubupdate AS publishes_updates, p.pubdelete AS publishes_deletes, p.pubtruncate AS publishes_truncates,
	pg_get_userbyid(p.pubowner) AS publication_owner
FROM pg_publication_tables t JOIN pg_publication p ON p.pubname = t.pubname
WHERE ($1::text = '' OR t.tablename IN (SELECT trim(name) FROM unnest(string_to_array($1::text, ',')) AS name))
	AND ($2::text = '' OR t.pubname IN (SELECT trim(name) FROM unnest(string_to_array($2::text, ',')) AS name))
	AND ($3::text = '' OR t.schemaname IN (SELECT trim(name) FROM unnest(string_to_array($3::text, ',')) AS name))
ORDER BY t.pubname, t.schemaname, t.tablename LIMIT $4::bigint`,
	}}
}

// postgresServer returns the types of tools about the server.
func postgresServer() []catalogTool {
	return []catalogTool{{
		name:        "postgres-database-overview",
		description: "Describe the server: version, whether it is a replica, uptime, and its connections: the limit, how many there are, how many are active, and the share in use.",
		statement: `SELECT current_setting('server_version') AS pg_version, pg_is_in_recovery() AS is_replica,
	(clock_timestamp() - pg_postmaster_start_time())::text AS uptime, most AS max_connections, used AS current_connections, active AS active_connections,
	round(used * 100.0 / most, 2) AS pct_connections_used
FROM (SELECT current_setting('max_connections')::int AS most, count(*) AS used, count(*) FILTER (WHERE state = 'active') AS active FROM pg_stat_activity) AS now`,
	}, {
		name:        "postgres-list-available-extensions",
		description: "List the extensions that can be installed on the server, with their default version and description.",
		statement:   `SELECT name, default_version, comment AS description FROM pg_available_extensions ORDER BY name`,
	}, {
		name:        "postgres-list-installed-extensions",
		description: "List the installed extensions with their version, schema, owner and description.",
		statement: `SELECT e.extname AS name, e.extversion AS version, n.nspname AS schema, pg_get_userbyid(e.extowner) AS owner, obj_description(e.oid, 'pg_extension') AS description
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
ORDER BY e.extname`,
	}, {
		name:        "postgres-list-tablespaces",
		description: "List the tablespaces with their owner, size in bytes, id, privileges and options. The size is null if the account may not create in the tablespace.",
		parameters:  []parameter.Spec{filterParam("tablespace_name", "A part of the name of a tablespace."), limitParam(50)},
		statement: `SELECT spcname AS tablespace_name, pg_get_userbyid(spcowner) AS owner_name,
	CASE WHEN has_tablespace_privilege(oid, 'CREATE') THEN pg_tablespace_size(oid) END AS size_in_bytes, oid, spcacl::text[] AS spcacl, spcoptions
FROM pg_tablespace
WHERE spcname LIKE '%' || $1::text || '%'
ORDER BY spcname LIMIT $2::bigint`,
	}, {
		name:        "postgres-list-pg-settings",
		description: "List the settings of the server with their value, unit, meaning, where the value comes from, and whether a change needs a restart.",
		parameters:  []parameter.Spec{filterParam("setting_name", "A part of the name of a setting."), limitParam(50)},
		statement: `SELECT name, setting AS current_value, unit, short_desc, source, CASE context WHEN 'postmaster' THEN 'Yes' ELSE 'No' END AS requires_restart
FROM pg_settings
WHERE name LIKE '%' || $1::text || '%'
ORDER BY name LIMIT $2::bigint`,
	}, {
		name:        "postgres-list-roles",
		description: "List the roles that users created, with their id, limit of connections, privileges, when the password expires, their members and the roles that they belong to.",
		parameters:  []parameter.Spec{filterParam("role_name", "A part of the name of a role."), limitParam(50)},
		statement: `SELECT r.rolname AS role_name, r.oid, r.rolconnlimit AS connection_limit, r.rolsuper AS is_superuser, r.rolinherit AS inherits_privileges,
	r.rolcreaterole AS can_create_roles, r.rolcreatedb AS can_create_db, r.rolcanlogin AS can_login, r.rolreplication AS is_replication_role,
	r.rolbypassrls AS bypass_rls, r.rolvaliduntil AS valid_until,
	ARRAY(SELECT m.rolname::text FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member WHERE a.roleid = r.oid ORDER BY 1) AS direct_members,
	ARRAY(SELECT m.rolname::text FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.roleid WHERE a.member = r.oid ORDER BY 1) AS member_of
FROM pg_roles r
WHERE r.rolname !~ '^pg_' AND r.rolname LIKE '%' || $1::text || '%'
ORDER BY r.rolname LIMIT $2::bigint`,
	}}
}
