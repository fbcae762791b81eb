PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE agent_messages (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                session_id TEXT NOT NULL,
                message_data TEXT NOT NULL,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id)
                    ON DELETE CASCADE
            );
INSERT INTO "agent_messages" VALUES(1,'river-1','{"content": "How deep is the Elbe in Dresden?", "role": "user"}','2026-12-01 01:11:31');
INSERT INTO "agent_messages" VALUES(2,'river-1','{"id": "__fake_id__", "content": [{"annotations": [], "text": "Ask the gauge.", "type": "output_text", "logprobs": []}], "role": "assistant", "status": "completed", "type": "message", "provider_data": {"model": "script", "response_id": "r"}}','2026-12-01 01:11:31');
INSERT INTO "agent_messages" VALUES(3,'river-1','{"arguments": "{\"river\": \"Elbe\"}", "call_id": "c1", "name": "depth", "type": "function_call", "id": "__fake_id__", "provider_data": {"model": "script", "response_id": "r"}}','2026-12-01 01:11:31');
INSERT INTO "agent_messages" VALUES(4,'river-1','{"call_id": "c1", "output": "An error occurred while running the tool. Please try again.", "type": "function_call_output"}','2026-12-01 01:11:31');
INSERT INTO "agent_messages" VALUES(5,'river-1','{"id": "__fake_id__", "content": [{"annotations": [], "text": "Once more.", "type": "output_text", "logprobs": []}], "role": "assistant", "status": "completed", "type": "message", "provider_data": {"model": "script", "response_id": "r"}}','2026-12-01 01:11:31');
INSERT INTO "agent_messages" VALUES(6,'river-1','{"arguments": "{\"river\": \"Elbe\", \"place\": \"Dresden\"}", "call_id": "c2", "name": "depth", "type": "function_call", "id": "__fake_id__", "provider_data": {"model": "script", "response_id": "r"}}','2026-12-01 01:11:31');
INSERT INTO "agent_messages" VALUES(7,'river-1','{"call_id": "c2", "output": "2.1 m", "type": "function_call_output"}','2026-12-01 01:11:31');
INSERT INTO "agent_messages" VALUES(8,'river-1','{"id": "__fake_id__", "content": [{"annotations": [], "text": "The Elbe is 2.1 m deep in Dresden.", "type": "output_text", "logprobs": []}], "role": "assistant", "status": "completed", "type": "message", "provider_data": {"model": "script", "response_id": "r"}}','2026-12-01 01:11:31');
CREATE TABLE agent_sessions (
                session_id TEXT PRIMARY KEY,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
            );
INSERT INTO "agent_sessions" VALUES('river-1','2026-12-01 01:11:31','2026-12-01 01:11:31');
CREATE INDEX idx_agent_messages_session_id
            ON agent_messages (session_id, id)
        ;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('agent_messages',8);
COMMIT;
