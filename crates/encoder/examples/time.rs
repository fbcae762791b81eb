//! Dev timing.
use knowledgepulse_encoder::*;
use std::{sync::Arc, time::Instant};
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let t = Instant::now();
    let model = Arc::new(Model::open(&path, 1).unwrap());
    eprintln!("load 1 thread {:?}", t.elapsed());
    let t = Instant::now();
    drop(Model::open(&path, 2).unwrap());
    eprintln!("load 2 threads {:?} {:?}", t.elapsed(), model.precision());
    let golden: serde_json::Value = serde_json::from_str(include_str!("../tests/golden.json")).unwrap();
    for kernel in Kernel::available() {
        let mut o = Options::default();
        o.kernel = Some(kernel);
        o.threads = 2;
        let mut e = Encoder::new(model.clone(), o).unwrap();
        let mut worst = 0f32;
        let mut cosw = 1f64;
        for g in golden.as_array().unwrap() {
            let ids: Vec<u32> = serde_json::from_value(g["tokens"].clone()).unwrap();
            let ex: Vec<f32> = serde_json::from_value(g["embedding"].clone()).unwrap();
            let got = e.embed(&ids).unwrap();
            worst = got.iter().zip(&ex).fold(worst, |w, (a, b)| w.max((a - b).abs()));
            cosw = cosw.min(got.iter().zip(&ex).map(|(a, b)| *a as f64 * *b as f64).sum());
        }
        println!("{kernel}: worst component {worst:e} cos {cosw}");
    }
    for kernel in Kernel::available() {
        if kernel == Kernel::Portable && std::env::args().nth(2).is_none() {
            continue;
        }
        for threads in [1, 2] {
            let mut o = Options::default();
            o.kernel = Some(kernel);
            o.threads = threads;
            let mut e = Encoder::new(model.clone(), o).unwrap();
            for n in [15usize, 54, 512] {
                let ids: Vec<u32> = (0..n)
                    .map(|i| {
                        if i == 0 {
                            101
                        } else {
                            1000 + ((i * 7919) % 20000) as u32
                        }
                    })
                    .collect();
                let mut ts = vec![];
                let begin = Instant::now();
                while ts.len() < 5 || begin.elapsed().as_millis() < 700 {
                    let t = Instant::now();
                    std::hint::black_box(e.embed(&ids).unwrap());
                    ts.push(t.elapsed().as_secs_f64() * 1e3);
                }
                ts.sort_by(|a, b| a.total_cmp(b));
                println!(
                    "{kernel} threads {threads} n={n} median {:.2} min {:.2} ms",
                    ts[ts.len() / 2],
                    ts[0]
                );
            }
        }
    }
}
