// Predictions from Rust: the few functions that are called, declared as gnnc.h has them.
//
//     predict_rs DATA WEIGHTS ROW..
use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr::null_mut;

#[repr(C)]
pub struct Program([u8; 0]);
#[repr(C)]
pub struct Handle([u8; 0]);

extern "C" {
    static gcn_program: Program;
    fn gnnc_status_text(status: c_int) -> *const c_char;
    fn gnnc_model_create(out: *mut *mut Handle, program: *const Program) -> c_int;
    fn gnnc_model_load(m: *mut Handle, path: *const c_char) -> c_int;
    fn gnnc_model_release(m: *mut Handle);
    fn gnnc_graph_create(out: *mut *mut Handle) -> c_int;
    fn gnnc_graph_read(g: *mut Handle, directory: *const c_char, map: c_int) -> c_int;
    fn gnnc_graph_commit(g: *mut Handle) -> c_int;
    fn gnnc_graph_release(g: *mut Handle);
    fn gnnc_session_create(out: *mut *mut Handle) -> c_int;
    fn gnnc_session_open(s: *mut Handle, m: *mut Handle, g: *mut Handle) -> c_int;
    fn gnnc_session_row_shape(s: *const Handle, rank: *mut c_int, dim: *mut i64) -> c_int;
    fn gnnc_session_predict(s: *mut Handle, n: i64, id: *const i64, out: *mut f32) -> c_int;
    fn gnnc_session_error(s: *const Handle) -> *const c_char;
    fn gnnc_session_destroy(s: *mut Handle);
}

fn check(status: c_int) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(gnnc_status_text(status)) }.to_string_lossy().into_owned())
}

/// One thread's predictions: it may move to another thread, and is not shared.
pub struct Session {
    handle: *mut Handle,
    width: usize,
}
unsafe impl Send for Session {}

impl Session {
    pub fn open(data: &str, weights: &str) -> Result<Session, String> {
        let text = |s: &str| CString::new(s).map_err(|e| e.to_string());
        let (data, weights) = (text(data)?, text(weights)?);
        let (mut m, mut g) = (null_mut(), null_mut());
        let mut s = Session { handle: null_mut(), width: 1 };
        // The session keeps what it needs of the model and the graph; these references go.
        let opened = unsafe {
            check(gnnc_model_create(&mut m, &gcn_program))
                .and_then(|_| check(gnnc_model_load(m, weights.as_ptr())))
                .and_then(|_| check(gnnc_graph_create(&mut g)))
                .and_then(|_| check(gnnc_graph_read(g, data.as_ptr(), 1)))
                .and_then(|_| check(gnnc_graph_commit(g)))
                .and_then(|_| check(gnnc_session_create(&mut s.handle)))
                .and_then(|_| s.check(gnnc_session_open(s.handle, m, g)))
        };
        unsafe {
            gnnc_graph_release(g);
            gnnc_model_release(m);
        }
        opened?;
        let (mut rank, mut dim) = (0, [1i64; 8]);
        s.check(unsafe { gnnc_session_row_shape(s.handle, &mut rank, dim.as_mut_ptr()) })?;
        s.width = dim[..rank as usize].iter().product::<i64>() as usize;
        Ok(s)
    }

    /// A row of scores for each id.
    pub fn predict(&mut self, id: &[i64]) -> Result<Vec<Vec<f32>>, String> {
        let mut out = vec![0f32; id.len() * self.width];
        self.check(unsafe {
            gnnc_session_predict(self.handle, id.len() as i64, id.as_ptr(), out.as_mut_ptr())
        })?;
        Ok(out.chunks(self.width).map(|row| row.to_vec()).collect())
    }

    fn check(&self, status: c_int) -> Result<(), String> {
        check(status).map_err(|_| {
            unsafe { CStr::from_ptr(gnnc_session_error(self.handle)) }.to_string_lossy().into_owned()
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { gnnc_session_destroy(self.handle) }
    }
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 4 {
        return Err("predict_rs DATA WEIGHTS ROW..".into());
    }
    let mut s = Session::open(&args[1], &args[2])?;
    let id: Result<Vec<i64>, _> = args[3..].iter().map(|a| a.parse()).collect();
    let id = id.map_err(|e| e.to_string())?;
    for (row, score) in id.iter().zip(s.predict(&id)?) {
        let best = (0..score.len()).max_by(|&a, &b| score[a].total_cmp(&score[b]));
        println!("row {}: class {}", row, best.unwrap_or(0));
    }
    Ok(())
}
