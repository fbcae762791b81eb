PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE app_states (
    app_name TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    update_time REAL NOT NULL
);
CREATE TABLE events (
    id TEXT NOT NULL,
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    invocation_id TEXT NOT NULL,
    timestamp REAL NOT NULL,
    event_data TEXT NOT NULL,
    PRIMARY KEY (app_name, user_id, session_id, id),
    FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions(app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('260750df-c270-4cde-bd49-3d372131c31d','rivers','u','river-1','e-d5c92eb0-3634-473d-bb3c-9425c99e6b37',1.79592166242752313614e+09,'{"content":{"parts":[{"text":"How deep is the Elbe in Dresden?"}],"role":"user"},"invocation_id":"e-d5c92eb0-3634-473d-bb3c-9425c99e6b37","author":"user","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":""},"id":"260750df-c270-4cde-bd49-3d372131c31d","timestamp":1795921662.4275231}');
INSERT INTO "events" VALUES('636395b1-4481-45ba-a9d5-ef3f497b5bed','rivers','u','river-1','e-d5c92eb0-3634-473d-bb3c-9425c99e6b37',1.79592166262441110605e+09,'{"content":{"parts":[{"text":"Ask the gauge.","thought":true},{"function_call":{"id":"adk-e87fba5a-7ce3-4741-a071-ee07023ad49c","args":{"river":"Elbe"},"name":"depth"}}],"role":"model"},"invocation_id":"e-d5c92eb0-3634-473d-bb3c-9425c99e6b37","author":"gauge","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":"gauge@1"},"long_running_tool_ids":[],"id":"636395b1-4481-45ba-a9d5-ef3f497b5bed","timestamp":1795921662.624411}');
INSERT INTO "events" VALUES('3355c6da-5943-42d6-9be9-49cb745cae88','rivers','u','river-1','e-d5c92eb0-3634-473d-bb3c-9425c99e6b37',1.79592166265435409545e+09,'{"content":{"parts":[{"function_response":{"id":"adk-e87fba5a-7ce3-4741-a071-ee07023ad49c","name":"depth","response":{"status":"error","error_message":"name a place"}}}],"role":"user"},"invocation_id":"e-d5c92eb0-3634-473d-bb3c-9425c99e6b37","author":"gauge","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":"gauge@1"},"id":"3355c6da-5943-42d6-9be9-49cb745cae88","timestamp":1795921662.654354}');
INSERT INTO "events" VALUES('7e77c01d-7a8c-4791-a209-a2cd10020b88','rivers','u','river-1','e-d5c92eb0-3634-473d-bb3c-9425c99e6b37',1.79592166267018365859e+09,'{"content":{"parts":[{"text":"Once more."},{"function_call":{"id":"adk-c9275b68-f080-46d3-b617-234e147cddc9","args":{"river":"Elbe","place":"Dresden"},"name":"depth"}}],"role":"model"},"invocation_id":"e-d5c92eb0-3634-473d-bb3c-9425c99e6b37","author":"gauge","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":"gauge@1"},"long_running_tool_ids":[],"id":"7e77c01d-7a8c-4791-a209-a2cd10020b88","timestamp":1795921662.6701837}');
INSERT INTO "events" VALUES('eba3bcfa-c94f-4fb8-be0c-726feaf87df8','rivers','u','river-1','e-d5c92eb0-3634-473d-bb3c-9425c99e6b37',1795921662.68429,'{"content":{"parts":[{"function_response":{"id":"adk-c9275b68-f080-46d3-b617-234e147cddc9","name":"depth","response":{"status":"success","depth":"2.1 m"}}}],"role":"user"},"invocation_id":"e-d5c92eb0-3634-473d-bb3c-9425c99e6b37","author":"gauge","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":"gauge@1"},"id":"eba3bcfa-c94f-4fb8-be0c-726feaf87df8","timestamp":1795921662.68429}');
INSERT INTO "events" VALUES('18887b86-0fa5-4883-8317-e5313d0204ff','rivers','u','river-1','e-d5c92eb0-3634-473d-bb3c-9425c99e6b37',1.79592166271440291402e+09,'{"content":{"parts":[{"text":"The Elbe is 2.1 m deep in Dresden."}],"role":"model"},"invocation_id":"e-d5c92eb0-3634-473d-bb3c-9425c99e6b37","author":"gauge","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":"gauge@1"},"id":"18887b86-0fa5-4883-8317-e5313d0204ff","timestamp":1795921662.714403}');
CREATE TABLE sessions (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('rivers','u','river-1','{}',1795921661.50633,1.79592166271440291402e+09);
CREATE TABLE user_states (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    state TEXT NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (app_name, user_id)
);
COMMIT;
