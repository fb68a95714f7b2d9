//! What the scheme `digest` makes of `user:password`: `user:` and the SHA-1 (FIPS 180-4) in base64.

/// The id that `addauth digest user:password` gives.
pub fn id_of(login: &[u8]) -> String {
    let user = login.split(|byte| *byte == b':').next().unwrap_or_default();
    format!("{}:{}", String::from_utf8_lossy(user), base64(&sha1(login)))
}

fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mixed = compress(state, &schedule(block));
        for (word, add) in state.iter_mut().zip(mixed) {
            *word = word.wrapping_add(add);
        }
    }
    let mut hash = [0; 20];
    for (bytes, word) in hash.chunks_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

fn schedule(block: &[u8]) -> [u32; 80] {
    let mut words = [0; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks(4)) {
        *word = u32::from_be_bytes(bytes.try_into().unwrap());
    }
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    words
}

fn compress(state: [u32; 5], words: &[u32; 80]) -> [u32; 5] {
    let [mut one, mut two, mut three, mut four, mut five] = state;
    for (at, word) in words.iter().enumerate() {
        let (mix, key) = match at / 20 {
            0 => ((two & three) | (!two & four), 0x5A82_7999),
            1 => (two ^ three ^ four, 0x6ED9_EBA1),
            2 => ((two & three) | (two & four) | (three & four), 0x8F1B_BCDC),
            _ => (two ^ three ^ four, 0xCA62_C1D6_u32),
        };
        let next = one.rotate_left(5).wrapping_add(mix).wrapping_add(five).wrapping_add(key).wrapping_add(*word);
        (five, four, three, two, one) = (four, three, two.rotate_left(30), one, next);
    }
    [one, two, three, four, five]
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let all = (0..3).fold(0, |all, at| all << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { letter as char } else { '=' });
        }
    }
    text
}
