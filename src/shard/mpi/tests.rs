use super::*;
use crate::error::ErrorKind;

#[test]
fn headers_travel() {
    let calls = [
        Call::Exchange,
        Call::Barrier,
        Call::Broadcast(3),
        Call::AllReduce(Combine::Max),
        Call::ReduceScatter(Combine::Prod),
        Call::AllGather,
        Call::AllToAll,
    ];
    for (i, call) in calls.into_iter().enumerate() {
        let header = Header { number: 1 << 40, call, dtype: TYPES[i], elements: 5, total: 7 };
        let words = encode(&header, 20);
        assert_eq!(decode(bytemuck::cast_slice(&words)).unwrap(), (header, 20));
    }
    assert_eq!(decode(&[0; 8]).unwrap_err().kind(), ErrorKind::Malformed);
    assert_eq!(decode(&[0xff; HEADER_BYTES]).unwrap_err().kind(), ErrorKind::Malformed);
}
