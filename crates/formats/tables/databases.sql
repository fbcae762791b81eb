-- The databases of agents that can be read: after comments, a line with the agent, a table and a column by which the database is recognised,
-- and the tables that are read, one with its columns being empty where it is missing; then the query for the names of the sessions in their
-- order, with what begins a session and its forks alike, and the query for the session of the name ?1 as JSON of the same shape as the export of
-- the agent. `unzstd` decompresses, `unmsgpack` makes JSON. A column that older databases lack is the NULL of a table beside.

-- The composers of Cursor. A bubble is a row of its own; old composers have their bubbles within. A table, or a list before it, has headers.
-- The chats of before composers are a list in one value.
-- @ cursor cursorDiskKV value cursorDiskKV ItemTable(key,value) composerHeaders(composerId,isSubagent,value)
SELECT name FROM (SELECT key AS name, rowid AS at FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'
AND CASE WHEN json_valid(CAST(value AS TEXT)) THEN max(coalesce(json_array_length(CAST(value AS TEXT), '$.fullConversationHeadersOnly'), 0),
    coalesce(json_array_length(CAST(value AS TEXT), '$.conversation'), 0)) ELSE 0 END > 0
UNION ALL SELECT tab.value ->> '$.tabId', NULL FROM ItemTable AS chats,
    json_each(iif(json_valid(CAST(chats.value AS TEXT)), CAST(chats.value AS TEXT), '{}'), '$.tabs') AS tab
WHERE chats.key = 'workbench.panel.aichat.view.aichat.chatdata' AND json_array_length(tab.value, '$.bubbles') > 0) ORDER BY at NULLS LAST;
WITH composer AS (SELECT substr(key, 14) AS name, CAST(value AS TEXT) AS data FROM cursorDiskKV WHERE key = ?1),
list AS (SELECT CAST(value AS TEXT) AS list FROM ItemTable WHERE key = 'composer.composerHeaders' AND json_valid(CAST(value AS TEXT))),
header AS (SELECT iif(json_valid(value), value, '{}') AS head, isSubagent AS is_one FROM composerHeaders, composer WHERE composerId = name
    UNION ALL SELECT each.value, false FROM list, composer, json_each(list, '$.allComposers') AS each WHERE each.value ->> '$.composerId' = name)
SELECT json_object('composerId', name, 'name', coalesce(data ->> '$.name', head ->> '$.name'), 'createdAt', data -> '$.createdAt',
    'model', data ->> '$.modelConfig.modelName', 'cwd', head ->> '$.workspaceIdentifier.uri.fsPath',
    'subagentInfo', coalesce(nullif(data -> '$.subagentInfo', 'null'), nullif(head -> '$.subagentInfo', 'null'), iif(is_one, json_object(), NULL)),
    'parentComposerId', data -> '$.parentComposerId', 'bubbles', json(CASE WHEN json_array_length(data, '$.conversation') > 0
    THEN data -> '$.conversation' ELSE (
        SELECT json_group_array(json(CAST(bubble.value AS TEXT)) ORDER BY header.key)
        FROM json_each(data, '$.fullConversationHeadersOnly') AS header JOIN cursorDiskKV AS bubble
        ON bubble.key = 'bubbleId:' || name || ':' || (header.value ->> '$.bubbleId')
        WHERE json_valid(CAST(bubble.value AS TEXT))) END)) FROM composer LEFT JOIN header
UNION ALL SELECT json_object('composerId', ?1, 'name', tab.value ->> '$.chatTitle', 'createdAt', tab.value -> '$.lastSendTime',
    'bubbles', tab.value -> '$.bubbles') FROM ItemTable AS chats,
    json_each(iif(json_valid(CAST(chats.value AS TEXT)), CAST(chats.value AS TEXT), '{}'), '$.tabs') AS tab
WHERE chats.key = 'workbench.panel.aichat.view.aichat.chatdata' AND tab.value ->> '$.tabId' = ?1 LIMIT 1;

-- A chat of Cursor's CLI. Its last root begins with the names of its messages, each of 32 bytes behind two others.
-- @ cursor blobs data blobs meta
WITH head AS (SELECT iif(json_valid(value), value, CAST(unhex(value) AS TEXT)) AS head FROM meta WHERE key = '0')
SELECT head ->> '$.agentId' FROM head JOIN blobs ON id = head ->> '$.latestRootBlobId';
WITH RECURSIVE head AS (SELECT iif(json_valid(value), value, CAST(unhex(value) AS TEXT)) AS head FROM meta WHERE key = '0'),
root AS (SELECT head, data FROM head JOIN blobs ON id = head ->> '$.latestRootBlobId'),
place(at) AS (SELECT 1 UNION ALL SELECT at + 34 FROM place, root WHERE substr(data, at + 34, 2) = x'0a20')
SELECT json_object('composerId', ?1, 'name', head ->> '$.name', 'createdAt', head -> '$.createdAt', 'model', head ->> '$.lastUsedModel',
    'subagentInfo', head -> '$.subagentInfo', 'bubbles', (SELECT json_group_array(json(CAST(message.data AS TEXT)) ORDER BY at)
        FROM place JOIN blobs AS message ON message.id = lower(hex(substr(root.data, at + 2, 32)))
        WHERE json_valid(CAST(message.data AS TEXT))))
FROM root;

-- opencode of version 2, which leaves the sessions that it has moved in the older tables, where an older version may go on with them.
-- @ opencode session_message seq session_v2 session_message message(session_id,time_created)
SELECT id, min(at) FROM (SELECT session_id AS id, time_created AS at FROM session_message) JOIN session_v2 s USING (id) GROUP BY id
HAVING max(at) >= ifnull((SELECT max(time_created) FROM message WHERE session_id = s.id), 0) ORDER BY s.time_created, id;
SELECT json_object('info', json_object('id', id, 'title', title, 'directory', directory, 'version', version,
    'parentID', parent_id, 'revert', json(revert), 'time', json_object('created', time_created)),
'messages', (SELECT json_group_array(json_set(m.data, '$.id', m.id, '$.type', m.type) ORDER BY m.seq)
    FROM session_message m WHERE m.session_id = s.id))
FROM session_v2 s WHERE s.id = ?1;

-- opencode and its forks. Older databases lack two columns.
-- @ opencode part message_id session message part
SELECT id, (SELECT min(time_created) FROM message WHERE session_id = s.id) FROM session s
WHERE id IN (SELECT session_id FROM message) ORDER BY time_created, id;
SELECT json_object('info', json_object('id', id, 'title', title, 'directory', directory, 'version', version,
    'parentID', (SELECT parent_id FROM session WHERE id = s.id), 'revert', json((SELECT revert FROM session WHERE id = s.id)),
    'time', json_object('created', time_created)),
'messages', (SELECT json_group_array(json_object('info', json_set(m.data, '$.id', m.id),
    'parts', (SELECT json_group_array(json_set(p.data, '$.id', p.id) ORDER BY p.id) FROM part p WHERE p.message_id = m.id))
    ORDER BY m.time_created, m.id) FROM message m WHERE m.session_id = s.id))
FROM session s, (SELECT NULL AS revert, NULL AS parent_id) WHERE s.id = ?1;

-- Goose. Older databases lack some columns.
-- @ goose messages content_json sessions messages
SELECT id, (SELECT min(created_timestamp) FROM messages WHERE session_id = s.id) FROM sessions s
WHERE id IN (SELECT session_id FROM messages) ORDER BY created_at, id;
SELECT json_object('id', s.id, 'working_dir', working_dir, 'description', description, 'created_at', created_at,
    'session_type', (SELECT session_type FROM sessions WHERE id = s.id), 'name', (SELECT name FROM sessions WHERE id = s.id),
    'model_config', (SELECT model_config_json FROM sessions WHERE id = s.id),
    'parent_session_id', (SELECT parent_session_id FROM sessions WHERE id = s.id), 'conversation', (SELECT json_group_array(json_object('role', role, 'created', created_timestamp,
        'content', json(content_json), 'metadata', json(metadata_json)) ORDER BY created_timestamp, m.id)
    FROM messages m WHERE m.session_id = s.id))
FROM sessions s, (SELECT NULL AS session_type, NULL AS parent_session_id, NULL AS name, NULL AS model_config_json) WHERE s.id = ?1;

-- Hermes. Older databases lack some columns. A session that goes on with a compacted one, branches from one, or begins where one was reset
-- or ended by itself, has a parent too. The copies of messages in a branch have times of their own.
-- @ hermes messages tool_name sessions messages
SELECT s.id, CASE WHEN s.id IN (SELECT id FROM sessions WHERE model_config LIKE '%_branched_from%'
    UNION SELECT parent_session_id FROM sessions WHERE model_config LIKE '%_branched_from%')
    THEN (SELECT content FROM messages WHERE session_id = s.id AND role = 'user' ORDER BY id LIMIT 1) END
FROM sessions s, (SELECT NULL AS parent_session_id, NULL AS model_config) WHERE s.id IN (SELECT session_id FROM messages)
ORDER BY started_at, s.id;
SELECT json_object('session', json_object('id', id, 'source', source, 'model', model, 'title', title, 'started_at', started_at,
    'cwd', (SELECT coalesce(cwd, (SELECT cwd FROM sessions WHERE id = (SELECT parent_session_id FROM sessions WHERE id = s.id)))
        FROM sessions WHERE id = s.id),
    'parent_session_id', (SELECT parent_session_id FROM sessions WHERE id = s.id AND (model_config LIKE '%_delegate_from%' OR coalesce(model_config, '') NOT LIKE '%_branched_from%'
        AND coalesce(model_config, '') NOT LIKE '%_reset_from%' AND NOT EXISTS (
        SELECT 1 FROM sessions WHERE id = (SELECT parent_session_id FROM sessions WHERE id = s.id) AND ended_at <= s.started_at
        AND end_reason IN ('compression', 'branched', 'session_reset', 'session_switch', 'idle', 'daily', 'suspended', 'resume_pending_expired'))))),
    'messages', (SELECT json_group_array(json_object('id', m.id, 'role', role, 'content', content, 'tool_call_id', tool_call_id,
        'tool_calls', tool_calls, 'reasoning', reasoning, 'timestamp', timestamp,
        'reasoning_content', (SELECT reasoning_content FROM messages WHERE id = m.id),
        'active', (SELECT active FROM messages WHERE id = m.id),
        'display_kind', (SELECT display_kind FROM messages WHERE id = m.id),
        'compacted', (SELECT compacted FROM messages WHERE id = m.id)) ORDER BY m.id)
    FROM messages m, (SELECT NULL AS reasoning_content, NULL AS active, NULL AS compacted, NULL AS display_kind) WHERE m.session_id = s.id))
FROM sessions s, (SELECT NULL AS parent_session_id, NULL AS end_reason, NULL AS ended_at, NULL AS cwd, NULL AS model_config) WHERE s.id = ?1;

-- Crush. Several messages share a second, and their rows are in order.
-- @ crush messages parts sessions messages
SELECT id FROM sessions WHERE id IN (SELECT session_id FROM messages) ORDER BY created_at, rowid;
SELECT json_object('id', id, 'title', title, 'parent_session_id', parent_session_id, 'created_at', created_at,
    'messages', (SELECT json_group_array(json_object('id', m.id, 'role', role, 'model', model, 'parts', json(parts),
        'is_summary_message', (SELECT is_summary_message FROM messages WHERE id = m.id)) ORDER BY m.created_at, m.rowid)
    FROM messages m, (SELECT 0 AS is_summary_message) WHERE m.session_id = s.id))
FROM sessions s WHERE s.id = ?1;

-- Kiro. A conversation has a row for each folder that it was in.
-- @ kiro conversations_v2 conversation_id conversations_v2
SELECT DISTINCT conversation_id FROM conversations_v2 ORDER BY conversation_id;
SELECT value FROM conversations_v2 WHERE conversation_id = ?1 ORDER BY updated_at DESC LIMIT 1;

-- Kiro of before, which has one conversation for each folder.
-- @ kiro conversations value conversations
SELECT value ->> '$.conversation_id' FROM conversations WHERE json_valid(value) AND value ->> '$.conversation_id' IS NOT NULL ORDER BY rowid;
SELECT value FROM conversations WHERE json_valid(value) AND value ->> '$.conversation_id' = ?1;

-- Forge, whose conversations have their messages in one column.
-- @ forge conversations context conversations
SELECT conversation_id FROM conversations WHERE json_valid(context) ORDER BY created_at, conversation_id;
SELECT json_set(context, '$.conversation_id', conversation_id, '$.title', title, '$.created_at', created_at)
FROM conversations WHERE conversation_id = ?1;

-- The sessions of the OpenAI Agents SDK, whose items are those of the API.
-- @ openai-chat agent_messages message_data agent_sessions agent_messages
SELECT session_id FROM agent_messages GROUP BY session_id ORDER BY min(id);
SELECT json_object('session_id', ?1, 'messages', json_group_array(json(message_data) ORDER BY id))
FROM agent_messages WHERE session_id = ?1;

-- The histories of LangChain's SQLChatMessageHistory.
-- @ langchain message_store message message_store
SELECT session_id FROM message_store GROUP BY session_id ORDER BY min(id);
SELECT json_object('session_id', ?1, 'messages', json_group_array(json(message) ORDER BY id)) FROM message_store WHERE session_id = ?1;

-- Checkpoints of LangGraph. The last one of a thread has the whole state, but for messages that the graph has taken away: those of the
-- checkpoints before it, if all have names.
-- @ langchain checkpoints checkpoint_ns checkpoints
SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY min(checkpoint_id);
WITH RECURSIVE states AS (SELECT checkpoint_id AS id, parent_checkpoint_id AS parent,
    json(CASE type WHEN 'msgpack' THEN unmsgpack(checkpoint) ELSE CAST(checkpoint AS TEXT) END) -> '$.channel_values' AS state
    FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ''),
branch AS (SELECT * FROM (SELECT * FROM states ORDER BY id DESC LIMIT 1) UNION ALL SELECT states.* FROM states JOIN branch ON states.id = branch.parent),
told AS (SELECT branch.id, key, value ->> '$.id' AS name, value FROM branch, json_each(state, '$.messages') WHERE type = 'object'),
named AS (SELECT value, row_number() OVER (PARTITION BY name ORDER BY id DESC) AS age, first_value(id) OVER (PARTITION BY name ORDER BY id) AS first,
    first_value(key) OVER (PARTITION BY name ORDER BY id) AS place FROM told)
SELECT json_object('values', json(CASE WHEN (SELECT min(name IS NOT NULL) FROM told) THEN json_set(state, '$.messages',
    json((SELECT json_group_array(json(value) ORDER BY first, place) FROM named WHERE age = 1))) ELSE state END),
    'next', json('[]'), 'config', json_object('configurable', json_object('thread_id', ?1)))
FROM branch ORDER BY id DESC LIMIT 1;

-- Agno, whose runs of sub-agents are rows of their own. Some columns have JSON within a string of JSON.
-- @ openai-chat agno_runs run_data agno_sessions agno_runs
SELECT session_id FROM agno_sessions WHERE session_id IN (SELECT session_id FROM agno_runs) ORDER BY created_at, session_id;
SELECT json_object('session_id', session_id, 'created_at', created_at,
    'runs', (SELECT json_group_array(json(run_data ->> '$') ORDER BY run_index, rowid)
        FROM agno_runs WHERE session_id = s.session_id AND parent_run_id IS NULL))
FROM agno_sessions s WHERE session_id = ?1;

-- Agno before version 3, which has the runs in a column.
-- @ openai-chat agno_sessions runs agno_sessions
SELECT session_id FROM agno_sessions WHERE runs IS NOT NULL ORDER BY created_at, session_id;
SELECT json_object('session_id', session_id, 'created_at', created_at, 'runs', json(runs ->> '$'))
FROM agno_sessions WHERE session_id = ?1;

-- Threads of Mastra. Messages of its first version are texts.
-- @ openai-chat mastra_messages thread_id mastra_messages
SELECT thread_id FROM mastra_messages GROUP BY thread_id ORDER BY min(createdAt), thread_id;
SELECT json_object('id', ?1, 'messages', json_group_array(json_object('id', id, 'role', role, 'createdAt', createdAt,
    'content', json(iif(json_valid(content), content, json_quote(content)))) ORDER BY createdAt, rowid))
FROM mastra_messages WHERE thread_id = ?1;

-- Google ADK. A session's name is unique with its app and user.
-- @ google-adk events event_data sessions events
SELECT rowid FROM sessions ORDER BY create_time, rowid;
SELECT json_object('id', id, 'app_name', app_name, 'events', (SELECT json_group_array(json(event_data) ORDER BY timestamp, e.rowid)
    FROM events e WHERE e.app_name = s.app_name AND e.user_id = s.user_id AND e.session_id = s.id))
FROM sessions s WHERE rowid = ?1;

-- Google ADK before version 1 of its schema, which has the fields of an event in columns. Its actions are pickled.
-- @ google-adk events author sessions events
SELECT rowid FROM sessions ORDER BY create_time, rowid;
SELECT json_object('id', id, 'app_name', app_name, 'events', (SELECT json_group_array(json_object('id', e.id,
    'invocation_id', invocation_id, 'author', author, 'timestamp', timestamp, 'actions', json_object(), 'content', json(content),
    'partial', json(iif(partial, 'true', 'false')), 'error_message', error_message) ORDER BY timestamp, e.rowid)
    FROM events e WHERE e.app_name = s.app_name AND e.user_id = s.user_id AND e.session_id = s.id))
FROM sessions s WHERE rowid = ?1;

-- OpenClaw, whose events are the lines of its files before. A sub-agent's session was spawned by another one.
-- @ pi transcript_events event_json transcript_events session_windows
SELECT session_id FROM transcript_events GROUP BY session_id ORDER BY min(created_at), session_id;
WITH event AS (SELECT seq, event_json FROM transcript_events WHERE session_id = ?1 AND json_valid(event_json))
SELECT json_set(coalesce((SELECT event_json FROM event WHERE event_json ->> '$.type' = 'session' ORDER BY seq LIMIT 1),
        json_object('type', 'session', 'id', ?1, 'timestamp', strftime('%FT%TZ', created_at / 1000, 'unixepoch'))),
    '$.spawnedBy', (SELECT session_id FROM session_windows WHERE session_key = own.spawned_by ORDER BY updated_at DESC LIMIT 1),
    '$.entries', (SELECT json_group_array(json(event_json) ORDER BY seq) FROM event WHERE event_json ->> '$.type' <> 'session'))
FROM session_windows own WHERE session_id = ?1;

-- Zed. Older databases lack a column.
-- @ zed threads data_type threads
SELECT id FROM threads ORDER BY updated_at, id;
SELECT json_set(CASE data_type WHEN 'zstd' THEN unzstd(data) ELSE CAST(data AS TEXT) END, '$.id', id,
    '$.parent_id', (SELECT parent_id FROM threads WHERE id = t.id))
FROM threads t, (SELECT NULL AS parent_id) WHERE t.id = ?1;

-- Threads of llm, whose messages name the one before. A message may have its call before its words.
-- @ openai-chat threads tip_message_hash threads turns messages parts
SELECT id FROM threads WHERE tip_message_hash IS NOT NULL ORDER BY datetime_utc, id;
WITH RECURSIVE said AS (SELECT m.*, 0 AS back FROM messages m JOIN threads t ON m.hash = t.tip_message_hash WHERE t.id = ?1
    UNION ALL SELECT m.*, back + 1 FROM messages m JOIN said ON m.hash = said.parent_hash)
SELECT json_object('id', id, 'created_at', datetime_utc, 'model', (SELECT model FROM turns WHERE thread_id = t.id LIMIT 1),
    'messages', (SELECT json_group_array(json_object('role', role, 'content', (
        SELECT json_group_array(json_patch(json_object('type', type, 'text', text), coalesce(payload, '{}')) ORDER BY type = 'tool_call', position)
        FROM parts WHERE message_hash = said.hash)) ORDER BY back DESC) FROM said))
FROM threads t WHERE id = ?1;

-- Memories of LlamaIndex.
-- @ openai-chat llama_index_memory data llama_index_memory
SELECT key FROM llama_index_memory GROUP BY key ORDER BY min(timestamp), key;
SELECT json_object('session_id', ?1, 'messages', json_group_array(json(data) ORDER BY timestamp, id)) FROM llama_index_memory WHERE key = ?1;
