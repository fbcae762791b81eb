PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL, 
	value VARCHAR(256) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "adk_internal_metadata" VALUES('schema_version','1');
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('rivers','{}','2026-11-29 06:24:13');
CREATE TABLE events (
	id VARCHAR(128) NOT NULL, 
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(256) NOT NULL, 
	timestamp DATETIME NOT NULL, 
	event_data TEXT, 
	PRIMARY KEY (id, app_name, user_id, session_id), 
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('da631738-175f-422d-b5a0-3297fe765d27','rivers','u','river-1','e-2f6dcde5-689d-482a-b4c8-5399b51b9868','2026-11-29 06:24:12.704938','{"content": {"parts": [{"text": "How deep is the Elbe in Dresden?"}], "role": "user"}, "invocation_id": "e-2f6dcde5-689d-482a-b4c8-5399b51b9868", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "da631738-175f-422d-b5a0-3297fe765d27", "timestamp": 1795933452.7049377}');
INSERT INTO "events" VALUES('0719f21d-bc04-416e-a2cb-274bfd79b3b8','rivers','u','river-1','e-2f6dcde5-689d-482a-b4c8-5399b51b9868','2026-11-29 06:24:12.886295','{"content": {"parts": [{"text": "Ask the gauge.", "thought": true}, {"function_call": {"id": "adk-bc1be1ca-c4ac-4e96-8eac-bb518baf3a67", "args": {"river": "Elbe"}, "name": "depth"}}], "role": "model"}, "invocation_id": "e-2f6dcde5-689d-482a-b4c8-5399b51b9868", "author": "gauge", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "gauge@1"}, "long_running_tool_ids": [], "id": "0719f21d-bc04-416e-a2cb-274bfd79b3b8", "timestamp": 1795933452.8862946}');
INSERT INTO "events" VALUES('49c119b6-fd09-4ac0-9c4d-13b9d22b97fb','rivers','u','river-1','e-2f6dcde5-689d-482a-b4c8-5399b51b9868','2026-11-29 06:24:12.929629','{"content": {"parts": [{"function_response": {"id": "adk-bc1be1ca-c4ac-4e96-8eac-bb518baf3a67", "name": "depth", "response": {"status": "error", "error_message": "name a place"}}}], "role": "user"}, "invocation_id": "e-2f6dcde5-689d-482a-b4c8-5399b51b9868", "author": "gauge", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "gauge@1"}, "id": "49c119b6-fd09-4ac0-9c4d-13b9d22b97fb", "timestamp": 1795933452.9296286}');
INSERT INTO "events" VALUES('5c9adb37-f111-403a-b510-06424ab4bac0','rivers','u','river-1','e-2f6dcde5-689d-482a-b4c8-5399b51b9868','2026-11-29 06:24:12.961489','{"content": {"parts": [{"text": "Once more."}, {"function_call": {"id": "adk-b2b16d50-1d5d-45a1-9a82-b6775ff49dff", "args": {"river": "Elbe", "place": "Dresden"}, "name": "depth"}}], "role": "model"}, "invocation_id": "e-2f6dcde5-689d-482a-b4c8-5399b51b9868", "author": "gauge", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "gauge@1"}, "long_running_tool_ids": [], "id": "5c9adb37-f111-403a-b510-06424ab4bac0", "timestamp": 1795933452.9614892}');
INSERT INTO "events" VALUES('c65410db-7308-408f-971d-874db9cb7ac8','rivers','u','river-1','e-2f6dcde5-689d-482a-b4c8-5399b51b9868','2026-11-29 06:24:12.996737','{"content": {"parts": [{"function_response": {"id": "adk-b2b16d50-1d5d-45a1-9a82-b6775ff49dff", "name": "depth", "response": {"status": "success", "depth": "2.1 m"}}}], "role": "user"}, "invocation_id": "e-2f6dcde5-689d-482a-b4c8-5399b51b9868", "author": "gauge", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "gauge@1"}, "id": "c65410db-7308-408f-971d-874db9cb7ac8", "timestamp": 1795933452.9967372}');
INSERT INTO "events" VALUES('53404f09-169f-412f-aab4-8b244b7f2ba4','rivers','u','river-1','e-2f6dcde5-689d-482a-b4c8-5399b51b9868','2026-11-29 06:24:13.033704','{"content": {"parts": [{"text": "The Elbe is 2.1 m deep in Dresden."}], "role": "model"}, "invocation_id": "e-2f6dcde5-689d-482a-b4c8-5399b51b9868", "author": "gauge", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "gauge@1"}, "id": "53404f09-169f-412f-aab4-8b244b7f2ba4", "timestamp": 1795933453.0337036}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('rivers','u','river-1','{}','2026-11-29 06:24:13.935195','2026-11-29 06:24:13.033704');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('rivers','u','{}','2026-11-29 06:24:13');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
COMMIT;
