//! Adds the linker flags that a Node.js addon needs on each platform.

fn main() {
    napi_build::setup();
}
